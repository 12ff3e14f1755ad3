// SPDX-License-Identifier: Apache-2.0
//
// What C++ programs do: templates, a class, small functions that are inlined, and calls back into
// Python. Of particles.py.
#include <pybind11/pybind11.h>

#include <cmath>
#include <functional>
#include <vector>

namespace particles {

template <typename Real>
struct Particle {
  Real x, y, mass;
};

template <typename Real>
inline Real Square(Real value) {
  return value * value;
}

template <typename Real>
class System {
 public:
  explicit System(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<Real>(i);
      particles_.push_back({std::cos(at), std::sin(at), at});
    }
  }

  [[gnu::noinline]] Real Energy() const {
    Real sum = 0;
    for (const auto& a : particles_) {
      for (const auto& b : particles_) {
        sum += a.mass * b.mass / std::sqrt(1 + Square(a.x - b.x) + Square(a.y - b.y));
      }
    }
    return sum;
  }

  /// For each sum of it `seen` is called.
  [[gnu::noinline]] void Observe(size_t times, const std::function<void(Real)>& seen) const {
    for (size_t i = 0; i < times; ++i) seen(Energy());
  }

 private:
  std::vector<Particle<Real>> particles_;
};

}  // namespace particles

PYBIND11_MODULE(particles_module, module) {
  using System = particles::System<double>;
  pybind11::class_<System>(module, "System")
      .def(pybind11::init<size_t>())
      .def("energy", &System::Energy)
      .def("observe", [](const System& system, size_t times, const pybind11::object& seen) {
        system.Observe(times, [&](double energy) { seen(energy); });
      });
}
