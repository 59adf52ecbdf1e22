// What a step would gain from faster resources, as values: analyze/sensitivity.h finds it.
#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct ResourceSensitivity {
  // Class of kernels, or "copies", "nvlink" (inside nodes), "network" (between), "host", "batch".
  std::string resource;
  double path_ms = 0;             // of its work on the critical path
  double elasticity = 0;          // relative change of the step over that of the times of the resource
  double saved_ms = 0;            // of the step if the resource is 10 % faster
  bool switches_at_once = false;  // a 0.1 % faster resource already leaves another path to wait for
  bool switches = false;          // a 10 % faster one does: it saves less than its path says
};

struct Sensitivity {
  double step_time_ms = 0;
  std::vector<ResourceSensitivity> resources;  // that save most first
};

}  // namespace stepcast
