# Makes the build folder a package: a project elsewhere finds it with -Dtally_DIR=BUILD_FOLDER.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

configure_file("${CMAKE_CURRENT_LIST_DIR}/tallyConfig.cmake.in" "${CMAKE_BINARY_DIR}/tallyConfig.cmake" @ONLY)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/tallyConfigVersion.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
