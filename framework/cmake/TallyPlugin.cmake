# tally_add_plugin(NAME SOURCE...): a plugin as a shared library NAME.so that exports its descriptor and nothing else.
include_guard(GLOBAL)

set(TALLY_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")
set(TALLY_PLUGIN_FOLDER "${CMAKE_BINARY_DIR}/lib/tally/plugins" CACHE PATH "Where plugins are built")

function(tally_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE tally::plugin)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_options(${name} PRIVATE "-Wl,--version-script=${TALLY_PLUGIN_MAP}" -Wl,-z,nodelete)
  if(NOT TALLY_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${name} PROPERTIES
    PREFIX "" CXX_VISIBILITY_PRESET hidden LINK_DEPENDS "${TALLY_PLUGIN_MAP}"
    LIBRARY_OUTPUT_DIRECTORY "${TALLY_PLUGIN_FOLDER}")
endfunction()
