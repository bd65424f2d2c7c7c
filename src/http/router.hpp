// Paths to handlers, by exact match. A handler judges the methods of its path itself; the list given here
// answers OPTIONS. HEAD goes where GET goes (the connection leaves the body out).
#pragma once

#include "http/exchange.hpp"

#include <functional>
#include <string>
#include <vector>

namespace belay::http {

class router final : public handler {
public:
    /// `allow` is the value of the Allow field, as in "GET, HEAD, OPTIONS". The handler must outlive the router.
    /// Routes are added before the server starts. Throws std::logic_error for a path that is already there.
    void add(std::string path, std::string allow, handler& target);
    void add(std::string path, std::string allow, std::function<void(std::shared_ptr<exchange>)> target);

    void handle(std::shared_ptr<exchange> exchange) override;

private:
    struct route {
        std::string path;
        std::string allow;
        handler* target;
        std::function<void(std::shared_ptr<exchange>)> function;
    };
    route& insert(std::string path, std::string allow);

    std::vector<route> routes_; // a handful: a linear search beats hashing
};

/// Answers with one line of text.
void respond_text(exchange& exchange, unsigned status, std::string_view text, std::vector<field> fields = {});

}
