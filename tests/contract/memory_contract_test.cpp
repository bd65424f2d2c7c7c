// The memory store keeps the contract.
#include "contract/store_contract.hpp"
#include "store/memory_store.hpp"

namespace belay::store {

namespace {

class tested_memory_store final : public tested_store {
public:
    tested_memory_store(limits const& limits, std::uint64_t epoch) : store_(limits, clock_, epoch) {}

    backend& store() override { return store_; }
    void advance(base::duration by) override { clock_.advance(by); }

private:
    base::manual_clock clock_;
    memory_store store_;
};

INSTANTIATE_TEST_SUITE_P(
    Memory, StoreContract,
    testing::Values(store_factory{
        "memory",
        [](limits const& limits, std::uint64_t epoch) {
            return std::make_unique<tested_memory_store>(limits, epoch);
        }}),
    store_name);

}

}
