# LibTorch from the PyPI wheel, as imported targets: neither nvcc nor a GPU is needed to configure.
#
#   tally_torch         every LibTorch library and header, c10d with Gloo and NCCL; for the host
#   tally_torch_plugin  what a plugin may use: libtorch_cpu, libtorch and libc10
#
# The wheel's torch folder is found in this order: -DTALLY_TORCH=DIR, the environment's TALLY_TORCH, what scripts/bootstrap installed.
include_guard(GLOBAL)

set(TALLY_TORCH_VERSION 2.11.0)

function(tally_find_torch_folder result)
  if(DEFINED ENV{TALLY_TORCH} AND NOT "$ENV{TALLY_TORCH}" STREQUAL "")
    set(${result} "$ENV{TALLY_TORCH}" PARENT_SCOPE)
    return()
  endif()
  if(DEFINED ENV{TALLY_CACHE})
    set(cache "$ENV{TALLY_CACHE}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(cache "$ENV{XDG_CACHE_HOME}/tally")
  else()
    set(cache "$ENV{HOME}/.cache/tally")
  endif()
  file(GLOB found "${cache}/torch-${TALLY_TORCH_VERSION}/lib/python3*/site-packages/torch")
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

if(NOT TALLY_TORCH)
  tally_find_torch_folder(folder)
  set(TALLY_TORCH "${folder}" CACHE PATH "The wheel's torch folder, with include/ and lib/" FORCE)
endif()
if(NOT EXISTS "${TALLY_TORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch ${TALLY_TORCH_VERSION} was not found (looked in '${TALLY_TORCH}'). "
                      "Run scripts/bootstrap, or set TALLY_TORCH to the torch folder of an installed wheel.")
endif()
file(STRINGS "${TALLY_TORCH}/include/torch/headeronly/version.h" version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
list(JOIN version_numbers "." found_version)
if(NOT found_version STREQUAL TALLY_TORCH_VERSION)
  message(FATAL_ERROR "tally is built with LibTorch ${TALLY_TORCH_VERSION}, but ${TALLY_TORCH} holds ${found_version}. "
                      "Run scripts/bootstrap, or set TALLY_TORCH to a ${TALLY_TORCH_VERSION} wheel.")
endif()

get_filename_component(site "${TALLY_TORCH}" DIRECTORY)
find_path(TALLY_GLOO_INCLUDE gloo/algorithm.h REQUIRED)  # headers only: the code is inside libtorch_cpu
find_path(TALLY_NCCL_INCLUDE nccl.h PATHS "${site}/nvidia/nccl/include" NO_DEFAULT_PATH REQUIRED)
find_path(TALLY_CUDA_INCLUDE cuda_runtime_api.h PATHS "${site}/nvidia/cu13/include" NO_DEFAULT_PATH REQUIRED)

foreach(library c10 torch_cpu torch c10_cuda torch_cuda)
  add_library(tally_wheel_${library} SHARED IMPORTED GLOBAL)
  set_target_properties(tally_wheel_${library} PROPERTIES IMPORTED_LOCATION "${TALLY_TORCH}/lib/lib${library}.so")
endforeach()

# The wheel's libtorch.so and libtorch_cpu.so export a static copy of std::filesystem in which remove_all jumps to address 0. With
# libstdc++ in front of them in every program, the whole process uses the system's.
set(tally_system_library_first "SHELL:-Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state")

add_library(tally_torch_plugin INTERFACE)
target_link_options(tally_torch_plugin INTERFACE "${tally_system_library_first}")
target_include_directories(tally_torch_plugin SYSTEM INTERFACE
  "${TALLY_TORCH}/include" "${TALLY_TORCH}/include/torch/csrc/api/include")
target_link_libraries(tally_torch_plugin INTERFACE tally_wheel_torch tally_wheel_torch_cpu tally_wheel_c10)

add_library(tally_torch INTERFACE)
target_link_options(tally_torch INTERFACE "${tally_system_library_first}")
target_include_directories(tally_torch SYSTEM INTERFACE
  "${TALLY_TORCH}/include" "${TALLY_TORCH}/include/torch/csrc/api/include"
  "${TALLY_CUDA_INCLUDE}" "${TALLY_NCCL_INCLUDE}" "${TALLY_GLOO_INCLUDE}")
target_compile_definitions(tally_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO USE_C10D_NCCL FMT_HEADER_ONLY=1)
# Without --no-as-needed the linker drops libtorch_cuda, and with it every GPU at run time.
target_link_libraries(tally_torch INTERFACE -Wl,--no-as-needed
  tally_wheel_torch tally_wheel_torch_cpu tally_wheel_torch_cuda tally_wheel_c10 tally_wheel_c10_cuda -Wl,--as-needed)
message(STATUS "LibTorch ${TALLY_TORCH_VERSION}: ${TALLY_TORCH}")
