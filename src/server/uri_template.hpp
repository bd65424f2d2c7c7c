// URI templates as far as resources need them: `{name}` stands for a piece without a slash, `{+name}` for any
// piece. Other forms of RFC 6570 are refused when a template is registered.
#pragma once

#include <belay/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::inline v0::detail {

class uri_template {
public:
    /// Throws std::invalid_argument with what is wrong.
    explicit uri_template(std::string_view text);

    /// The variables' values, percent-decoded; nothing if the URI does not fit.
    [[nodiscard]] std::optional<json::object> match(std::string_view uri) const;
    [[nodiscard]] std::vector<std::string> variables() const;

private:
    struct piece {
        std::string literal; // before the variable
        std::string variable;
        bool takes_slashes = false;
    };
    std::vector<piece> pieces_;
    std::string tail_; // literal after the last variable
};

}
