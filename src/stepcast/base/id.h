// Typed indices: an Id<Lane> cannot be passed where an Id<Task> is expected. A default-constructed Id is invalid.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace stepcast {

// `Tag` is any type, complete or not; it only makes Ids of different tags different types.
template <class Tag>
class Id {
 public:
  using value_type = std::uint32_t;

  constexpr Id() = default;  // invalid
  constexpr explicit Id(value_type index) : index_(index) {}
  constexpr explicit Id(std::size_t index) : index_(static_cast<value_type>(index)) {}
  constexpr explicit Id(int index) : index_(static_cast<value_type>(index)) {}

  [[nodiscard]] constexpr bool valid() const { return index_ != kInvalid; }
  [[nodiscard]] constexpr value_type index() const { return index_; }

  auto operator<=>(const Id&) const = default;

 private:
  static constexpr value_type kInvalid = std::numeric_limits<value_type>::max();
  value_type index_ = kInvalid;
};

}  // namespace stepcast

template <class Tag>
struct std::hash<stepcast::Id<Tag>> {
  std::size_t operator()(stepcast::Id<Tag> id) const noexcept {
    return std::hash<std::uint32_t>{}(id.index());
  }
};
