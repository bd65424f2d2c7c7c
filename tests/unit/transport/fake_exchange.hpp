// An HTTP exchange without a network: a POST of the test's, and what was answered.
#pragma once

#include "http/exchange.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace belay::transport {

class fake_exchange final : public http::exchange, public http::request {
public:
    fake_exchange(base::loop& loop, std::string body, std::map<std::string, std::string, std::less<>> fields)
        : loop_(loop), body_(std::move(body)), fields_(std::move(fields))
    {
        fields_.emplace("Content-Type", "application/json");
    }

    unsigned status = 0; ///< zero: not answered yet
    std::string answer;

    [[nodiscard]] http::method method() const noexcept override { return http::method::post; }
    [[nodiscard]] std::string_view method_text() const noexcept override { return "POST"; }
    [[nodiscard]] std::string_view path() const noexcept override { return "/mcp"; }
    [[nodiscard]] std::string_view query() const noexcept override { return {}; }
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept override
    {
        auto const found = fields_.find(name);
        return found == fields_.end() ? std::nullopt : std::optional<std::string_view>(found->second);
    }
    [[nodiscard]] std::size_t header_count(std::string_view name) const noexcept override
    {
        return fields_.contains(name) ? 1 : 0;
    }
    [[nodiscard]] std::string_view body() const noexcept override { return body_; }

    [[nodiscard]] http::request const& request() const noexcept override { return *this; }
    [[nodiscard]] base::loop& loop() noexcept override { return loop_; }
    void respond(http::response_head const& head, std::string_view body) override
    {
        status = head.status;
        answer = body;
    }
    void observe(http::stream_observer&) override {}
    void begin_stream(http::response_head const& head, http::stream_observer&) override { status = head.status; }
    [[nodiscard]] std::string& out() noexcept override { return out_; }
    bool flush() override
    {
        answer += std::exchange(out_, {});
        return true;
    }
    std::shared_ptr<base::receipt> end_stream(std::move_only_function<void()>) override
    {
        flush();
        return nullptr;
    }
    void abort() override {}
    [[nodiscard]] std::size_t unacknowledged() const noexcept override { return 0; }
    [[nodiscard]] bool peer_gone() const noexcept override { return false; }

private:
    base::loop& loop_;
    std::string body_;
    std::map<std::string, std::string, std::less<>> fields_;
    std::string out_;
};

}
