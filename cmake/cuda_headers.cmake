# pystrobe_cuda_headers: the headers of CUDA 12 or later, for gpu/. Of the packages nvidia-cuda-runtime,
# -cupti and -crt and nvidia-nvtx from PyPI, which pyproject.toml asks for, where the interpreter of the
# build has them, or .venv; else of a toolkit.
set(candidates)
if(PYSTROBE_BUILD_PYTHON)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND ${Python_EXECUTABLE} -c
    "import importlib.util as u; print(*u.find_spec('nvidia.cu13').submodule_search_locations, sep=';')"
    OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  list(APPEND candidates ${packages})
endif()
file(GLOB packages ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13)
list(APPEND candidates ${packages} $ENV{CUDA_HOME} /usr/local/cuda)
find_path(CUDA_INCLUDE_DIR cuda.h PATHS ${candidates} PATH_SUFFIXES include NO_DEFAULT_PATH)
if(CUDA_INCLUDE_DIR)
  file(STRINGS ${CUDA_INCLUDE_DIR}/cuda.h cuda_version REGEX "^#define CUDA_VERSION [0-9]+$")
  string(REGEX REPLACE ".* " "" cuda_version "${cuda_version}")
endif()
if(NOT CUDA_INCLUDE_DIR OR cuda_version LESS 12000)
  message(FATAL_ERROR "gpu/ needs the headers of CUDA 12 or later, and there is \"${CUDA_INCLUDE_DIR}\": "
    "`make build` installs them in .venv; -D CUDA_INCLUDE_DIR=... names others")
endif()
add_library(pystrobe_cuda_headers INTERFACE)
target_include_directories(pystrobe_cuda_headers SYSTEM INTERFACE ${CUDA_INCLUDE_DIR})
