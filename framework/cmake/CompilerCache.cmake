# ccache, when it is installed. Depend mode takes the headers from the compiler's own list instead of preprocessing every file first, which
# costs as much as a small file's compilation here. Paths are taken relative to the source tree, so that a second clone finds what the first
# compiled. A precompiled header makes every call uncacheable unless these sloppiness flags are set.
find_program(TALLY_CCACHE ccache)
if(TALLY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    CCACHE_DEPEND=1 "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${TALLY_CCACHE}")
  add_compile_options(-fpch-preprocess)
endif()
