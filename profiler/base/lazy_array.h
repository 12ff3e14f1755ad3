// SPDX-License-Identifier: Apache-2.0
//
// An array for places that must not allocate, such as signal handlers.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "profiler/base/error.h"

namespace pystrobe {

/// Room for a fixed number of elements, of which the kernel gives memory to those that were ever
/// touched. Nothing but Make and the destructor allocates or frees.
/// [one thread at a time] [async-signal-safe, but for Make and the destructor]
template <typename T>
  requires std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>
class LazyArray {
 public:
  /// Room for `capacity` elements, all bytes zero. Fails with kIo when there is no address space.
  static Result<LazyArray> Make(size_t capacity) {
    void* memory = mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      return FailErrno(errno, ErrorCode::kIo, "no memory for {} bytes", capacity * sizeof(T));
    }
    return LazyArray(static_cast<T*>(memory), capacity);
  }
  ~LazyArray() {
    if (data_ != nullptr) munmap(data_, capacity_ * sizeof(T));
  }
  LazyArray(LazyArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  LazyArray& operator=(LazyArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
    return *this;
  }

  /// False where it is full.
  bool Append(const T& element) {
    if (size_ == capacity_) return false;
    data_[size_++] = element;
    return true;
  }
  void clear() { size_ = 0; }
  /// All bytes zero again, and the memory given back, which it is not where it is locked
  /// (mlockall).
  void Zero() {
    if (madvise(data_, capacity_ * sizeof(T), MADV_DONTNEED) != 0) {
      std::memset(data_, 0, capacity_ * sizeof(T));
    }
  }
  /// At most capacity(). New elements are what was there before.
  void resize(size_t size) { size_ = size; }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  LazyArray(T* data, size_t capacity) : data_(data), capacity_(capacity) {}

  T* data_ = nullptr;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

}  // namespace pystrobe
