# pystrobe_cuda_headers: the headers of CUDA 12 or later, CUPTI and NVTX 3, for gpu/. Of the packages
# nvidia-cuda-{runtime,crt,cupti} and nvidia-nvtx from PyPI, which pyproject.toml asks for, where the
# interpreter of the build has them, or .venv; else of a toolkit. CUDA_INCLUDE_DIR names others.
set(candidates ${CUDA_INCLUDE_DIR})
if(PYSTROBE_BUILD_PYTHON)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${Python_EXECUTABLE} -c
    "import importlib.util as u; print(*[p + '/include' for p in u.find_spec('nvidia.cu13').submodule_search_locations], sep=';')"
    OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND candidates ${packages})
endif()
file(GLOB packages ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13/include)
list(APPEND candidates ${packages} $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
  /usr/local/cuda/include /opt/cuda/include /usr/include)

set(cuda_include "")
set(seen "")
foreach(candidate IN LISTS candidates)
  # A toolkit's CUPTI has a folder of its own.
  unset(cupti_include)
  foreach(folder IN ITEMS ${candidate} ${candidate}/../extras/CUPTI/include)
    if(NOT DEFINED cupti_include AND EXISTS ${folder}/cupti.h)
      set(cupti_include ${folder})
    endif()
  endforeach()
  if(NOT EXISTS ${candidate}/cuda.h OR NOT EXISTS ${candidate}/nvtx3/nvToolsExt.h OR NOT cupti_include)
    continue()
  endif()
  file(STRINGS ${candidate}/cuda.h version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version "${version}")
  if(version AND version GREATER_EQUAL 12000)
    set(cuda_include ${candidate} ${cupti_include})
    break()
  endif()
  string(APPEND seen " (${candidate}: ${version})")
endforeach()
if(NOT cuda_include)
  message(FATAL_ERROR "gpu/ needs the headers of CUDA 12 or later, and there are none${seen}: "
    "`make build` installs them in .venv; -D CUDA_INCLUDE_DIR=... names others")
endif()
message(STATUS "CUDA's headers: ${cuda_include}")
add_library(pystrobe_cuda_headers INTERFACE)
target_include_directories(pystrobe_cuda_headers SYSTEM INTERFACE ${cuda_include})
