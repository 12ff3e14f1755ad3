# pystrobe_cuda_headers: the headers of CUDA 12 or later, for gpu/. Of a toolkit where there is one, else
# of the packages nvidia-cuda-runtime, -cupti and -crt and nvidia-nvtx from PyPI, which pyproject.toml asks for;
# found beside pybind11, or in .venv.
get_filename_component(site_packages "${pybind11_DIR}/../../../.." ABSOLUTE)
file(GLOB venv_packages ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages)
set(wheels)
foreach(packages IN ITEMS ${site_packages} ${venv_packages})
  list(APPEND wheels ${packages}/nvidia/cu13/include)
endforeach()
find_path(CUDA_INCLUDE_DIR cuda.h
  HINTS $ENV{CUDA_HOME}/include PATHS ${wheels} /usr/local/cuda/include)
if(CUDA_INCLUDE_DIR)
  file(STRINGS ${CUDA_INCLUDE_DIR}/cuda.h cuda_version REGEX "^#define CUDA_VERSION [0-9]+$")
  string(REGEX REPLACE ".* " "" cuda_version "${cuda_version}")
endif()
if(NOT CUDA_INCLUDE_DIR OR cuda_version LESS 12000)
  message(FATAL_ERROR "gpu/ needs the headers of CUDA 12 or later, and there is \"${CUDA_INCLUDE_DIR}\": "
    "`pip install --group build` installs them; -D CUDA_INCLUDE_DIR=... names others")
endif()
add_library(pystrobe_cuda_headers INTERFACE)
target_include_directories(pystrobe_cuda_headers SYSTEM INTERFACE ${CUDA_INCLUDE_DIR})
