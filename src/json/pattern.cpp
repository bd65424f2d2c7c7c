#include "json/pattern.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

namespace belay::inline v0::detail {

namespace {

constexpr char32_t last_code_point = 0x10FFFF;
constexpr char32_t replacement = 0xFFFD;

std::u32string code_points(std::string_view utf8)
{
    std::u32string out;
    out.reserve(utf8.size());
    for (std::size_t i = 0; i < utf8.size();) {
        auto const byte = [&](std::size_t at) { return static_cast<unsigned char>(utf8[at]); };
        std::size_t length = 1;
        char32_t point = byte(i);
        if (point >= 0xF0 && point < 0xF8) {
            length = 4;
            point &= 0x07;
        } else if (point >= 0xE0) {
            length = 3;
            point &= 0x0F;
        } else if (point >= 0xC0) {
            length = 2;
            point &= 0x1F;
        }
        bool is_good = byte(i) < 0x80 || (byte(i) >= 0xC2 && byte(i) < 0xF5 && i + length <= utf8.size());
        for (std::size_t k = 1; is_good && k < length; ++k) {
            is_good = (byte(i + k) & 0xC0) == 0x80;
            point = (point << 6) | (byte(i + k) & 0x3Fu);
        }
        constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        is_good = is_good && point >= least[length] && point <= last_code_point && !(point >= 0xD800 && point < 0xE000);
        out += is_good ? point : replacement;
        i += is_good ? length : 1;
    }
    return out;
}

bool is_word(char32_t point) noexcept
{
    return (point >= U'a' && point <= U'z') || (point >= U'A' && point <= U'Z') || (point >= U'0' && point <= U'9')
        || point == U'_';
}

int hex_digit(char32_t point) noexcept
{
    if (point >= U'0' && point <= U'9')
        return static_cast<int>(point - U'0');
    if (point >= U'a' && point <= U'f')
        return static_cast<int>(point - U'a') + 10;
    if (point >= U'A' && point <= U'F')
        return static_cast<int>(point - U'A') + 10;
    return -1;
}

}

/// From text to a tree, and from the tree to instructions.
class pattern_compiler {
public:
    pattern_compiler(pattern& into, std::string_view expression, pattern::limits const& limits)
        : into_(into), limits_(limits), text_(code_points(expression))
    {
    }

    void run()
    {
        auto const whole = alternatives(0);
        if (at_ < text_.size())
            fail("a ) without its (");
        if (size_of(*whole) > limits_.max_size)
            fail("it is too large; make its counted repetitions smaller");
        write_part(*whole);
    }

private:
    using range = pattern::range;
    using ranges = std::vector<range>;
    using instruction = pattern::instruction;
    using op = pattern::instruction::kind;

    struct tree {
        enum class kind { nothing, sequence, alternatives, repetition, step, look };
        kind what = kind::nothing;
        std::vector<std::unique_ptr<tree>> parts;
        instruction step{op::done};
        std::size_t low = 0;
        std::optional<std::size_t> high;
    };
    using node = std::unique_ptr<tree>;

    [[noreturn]] void fail(std::string const& why) const
    {
        throw std::invalid_argument(
            "this regular expression cannot be used: " + why + " (at character " + std::to_string(at_) + ")");
    }

    // --- reading

    [[nodiscard]] bool is_next(char32_t point) const { return at_ < text_.size() && text_[at_] == point; }
    [[nodiscard]] bool is_next(std::u32string_view points) const
    {
        return std::u32string_view(text_).substr(at_).starts_with(points);
    }
    bool take(std::u32string_view points)
    {
        bool const is_there = is_next(points);
        if (is_there)
            at_ += points.size();
        return is_there;
    }

    static node make(tree::kind what)
    {
        auto made = std::make_unique<tree>();
        made->what = what;
        return made;
    }
    static node step(instruction what)
    {
        auto made = make(tree::kind::step);
        made->step = what;
        return made;
    }
    node set(ranges members)
    {
        into_.sets_.push_back(sorted(std::move(members)));
        return step({op::consume, false, static_cast<std::uint32_t>(into_.sets_.size() - 1)});
    }

    node alternatives(std::size_t depth)
    {
        if (depth > limits_.max_depth)
            fail("its groups are nested too deeply");
        auto out = make(tree::kind::alternatives);
        do
            out->parts.push_back(sequence(depth));
        while (take(U"|"));
        if (out->parts.size() == 1)
            return std::move(out->parts.front());
        return out;
    }

    node sequence(std::size_t depth)
    {
        auto out = make(tree::kind::sequence);
        while (at_ < text_.size() && !is_next(U'|') && !is_next(U')'))
            out->parts.push_back(term(depth));
        return out;
    }

    node term(std::size_t depth)
    {
        if (take(U"^"))
            return step({op::begin});
        if (take(U"$"))
            return step({op::end});
        if (take(U"\\b"))
            return step({op::word_border});
        if (take(U"\\B"))
            return step({op::no_word_border});
        if (is_next(U"(?<=") || is_next(U"(?<!"))
            fail("look-behind is not supported");
        bool const is_negative = is_next(U"(?!");
        if (take(U"(?=") || take(U"(?!")) {
            auto look = make(tree::kind::look);
            look->step.is_negative = is_negative;
            look->parts.push_back(alternatives(depth + 1));
            close();
            return look;
        }
        return repeated(atom(depth));
    }

    node atom(std::size_t depth)
    {
        char32_t const point = text_[at_];
        if (take(U"(")) {
            if (take(U"?<"))
                group_name();
            else if (is_next(U'?') && !take(U"?:"))
                fail("this kind of group is not supported");
            auto inside = alternatives(depth + 1);
            close();
            return inside;
        }
        if (point == U'*' || point == U'+' || point == U'?' || quantifier())
            fail("there is nothing to repeat");
        ++at_;
        if (point == U'.')
            return set(complement(ranges{{U'\n', U'\n'}, {U'\r', U'\r'}, {0x2028, 0x2029}}));
        if (point == U'[')
            return set(members());
        if (point == U'\\')
            return set(escape(false));
        return set({{point, point}});
    }

    void close()
    {
        if (!take(U")"))
            fail("a ( without its )");
    }

    void group_name()
    {
        auto const begin = at_;
        while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] >= 0x80 || text_[at_] == U'$'))
            ++at_;
        if (at_ == begin || !take(U">"))
            fail("a group's name must be of letters and digits and end with >");
    }

    struct count {
        std::size_t low;
        std::optional<std::size_t> high;
        std::size_t length;
    };

    /// `{2}`, `{2,}` or `{2,5}`. A brace that does not begin one is itself.
    [[nodiscard]] std::optional<count> quantifier() const
    {
        if (!is_next(U'{'))
            return std::nullopt;
        auto at = at_ + 1;
        auto const number = [&]() -> std::optional<std::size_t> {
            std::optional<std::size_t> out;
            for (; at < text_.size() && text_[at] >= U'0' && text_[at] <= U'9'; ++at)
                out = std::min(out.value_or(0) * 10 + (text_[at] - U'0'), std::size_t(1'000'000'000));
            return out;
        };
        auto const low = number();
        if (!low)
            return std::nullopt;
        auto high = low;
        if (at < text_.size() && text_[at] == U',') {
            ++at;
            high = number();
        }
        if (at >= text_.size() || text_[at] != U'}')
            return std::nullopt;
        return count{*low, high, at + 1 - at_};
    }

    node repeated(node what)
    {
        auto out = make(tree::kind::repetition);
        if (take(U"*")) {
        } else if (take(U"+")) {
            out->low = 1;
        } else if (take(U"?")) {
            out->high = 1;
        } else if (auto const given = quantifier()) {
            if (given->high && *given->high < given->low)
                fail("a repetition whose numbers are in the wrong order");
            out->low = given->low;
            out->high = given->high;
            at_ += given->length;
        } else {
            return what;
        }
        take(U"?"); // asks for the shortest, which is no different where only a yes or no is wanted
        out->parts.push_back(std::move(what));
        return out;
    }

    ranges members()
    {
        bool const is_negative = take(U"^");
        ranges all;
        while (!take(U"]")) {
            auto const first = member();
            if (!is_next(U'-') || is_next(U"-]")) {
                all.insert(all.end(), first.begin(), first.end());
                continue;
            }
            take(U"-");
            auto const last = member();
            auto const is_one = [](ranges const& of) { return of.size() == 1 && of[0].first == of[0].last; };
            if (!is_one(first) || !is_one(last) || last[0].first < first[0].first)
                fail("a range in [] must go from a character to a later one");
            all.push_back({first[0].first, last[0].first});
        }
        return is_negative ? complement(std::move(all)) : all;
    }

    ranges member()
    {
        if (at_ >= text_.size())
            fail("a [ without its ]");
        char32_t const point = text_[at_++];
        return point == U'\\' ? escape(true) : ranges{{point, point}};
    }

    /// What follows a backslash.
    ranges escape(bool is_in_set)
    {
        if (at_ >= text_.size())
            fail("a \\ at its end");
        static ranges const digits = {{U'0', U'9'}};
        static ranges const words = {{U'0', U'9'}, {U'A', U'Z'}, {U'_', U'_'}, {U'a', U'z'}};
        static ranges const spaces
            = {{U'\t', U'\r'},   {U' ', U' '},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
               {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
        auto const one = [](char32_t point) { return ranges{{point, point}}; };
        char32_t const point = text_[at_++];
        switch (point) {
        case U'd': return digits;
        case U'D': return complement(digits);
        case U'w': return words;
        case U'W': return complement(words);
        case U's': return spaces;
        case U'S': return complement(spaces);
        case U't': return one(U'\t');
        case U'n': return one(U'\n');
        case U'v': return one(U'\v');
        case U'f': return one(U'\f');
        case U'r': return one(U'\r');
        case U'c':
            if (at_ < text_.size() && is_word(text_[at_]) && text_[at_] >= U'A' && text_[at_] != U'_')
                return one(text_[at_++] % 32);
            fail("\\c must be followed by a letter");
        case U'x': return one(hex(2));
        case U'u': return one(unicode());
        case U'b':
            if (is_in_set)
                return one(U'\b');
            break;
        case U'0':
            if (at_ >= text_.size() || text_[at_] < U'0' || text_[at_] > U'9')
                return one(0);
            break;
        case U'p':
        case U'P': fail("\\p{…} is not supported; write the characters as a set, such as [a-zA-Z]");
        default: break;
        }
        if (point == U'k' || (point >= U'0' && point <= U'9'))
            fail("back references are not supported");
        if (is_word(point) && point != U'_')
            fail("there is no such \\ sequence");
        return one(point);
    }

    char32_t hex(std::size_t digits)
    {
        char32_t out = 0;
        for (std::size_t i = 0; i < digits; ++i) {
            int const digit = at_ < text_.size() ? hex_digit(text_[at_]) : -1;
            if (digit < 0)
                fail("hexadecimal digits are missing");
            out = out * 16 + static_cast<char32_t>(digit);
            ++at_;
        }
        return out;
    }

    char32_t unicode()
    {
        if (take(U"{")) {
            char32_t out = hex(1);
            while (!take(U"}")) {
                out = out * 16 + hex(1);
                if (out > last_code_point)
                    fail("there is no such character");
            }
            return out;
        }
        char32_t const first = hex(4);
        bool const is_high = first >= 0xD800 && first < 0xDC00;
        if (!is_high || !is_next(U"\\u") || is_next(U"\\u{"))
            return first;
        auto const before = at_;
        at_ += 2;
        char32_t const second = hex(4);
        if (second >= 0xDC00 && second < 0xE000)
            return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        at_ = before;
        return first;
    }

    // --- sets

    static ranges sorted(ranges from)
    {
        std::ranges::sort(from, {}, &range::first);
        ranges out;
        for (auto const& each : from) {
            if (!out.empty() && each.first <= out.back().last + 1)
                out.back().last = std::max(out.back().last, each.last);
            else
                out.push_back(each);
        }
        return out;
    }

    static ranges complement(ranges of)
    {
        ranges out;
        char32_t from = 0;
        for (auto const& each : sorted(std::move(of))) {
            if (each.first > from)
                out.push_back({from, each.first - 1});
            from = each.last + 1;
        }
        if (from <= last_code_point)
            out.push_back({from, last_code_point});
        return out;
    }

    // --- writing

    /// No less than what write() makes and than the steps it takes. More than the limit is all the same.
    [[nodiscard]] std::size_t size_of(tree const& of) const
    {
        std::size_t inside = 1;
        for (auto const& each : of.parts)
            inside = std::min(inside + size_of(*each) + 1, limits_.max_size + 1);
        if (of.what != tree::kind::repetition)
            return inside;
        auto const copies = std::max<std::size_t>(of.high.value_or(of.low + 1), 1);
        return copies > limits_.max_size ? limits_.max_size + 1 : std::min((inside + 2) * copies, limits_.max_size + 1);
    }

    static std::uint32_t end_of(pattern::part const& out) { return static_cast<std::uint32_t>(out.code.size()); }

    void write(pattern::part& out, tree const& from)
    {
        switch (from.what) {
        case tree::kind::nothing: break;
        case tree::kind::step: out.code.push_back(from.step); break;
        case tree::kind::sequence:
            for (auto const& each : from.parts)
                write(out, *each);
            break;
        case tree::kind::alternatives: {
            std::vector<std::uint32_t> jumps;
            for (std::size_t i = 0; i < from.parts.size(); ++i) {
                bool const is_last = i + 1 == from.parts.size();
                auto const fork = end_of(out);
                if (!is_last)
                    out.code.push_back({op::fork});
                write(out, *from.parts[i]);
                if (is_last)
                    break;
                jumps.push_back(end_of(out));
                out.code.push_back({op::jump});
                out.code[fork].to = end_of(out);
            }
            for (auto const jump : jumps)
                out.code[jump].to = end_of(out);
            break;
        }
        case tree::kind::repetition: {
            for (std::size_t i = 0; i < from.low; ++i)
                write(out, *from.parts[0]);
            if (!from.high) {
                auto const fork = end_of(out);
                out.code.push_back({op::fork});
                write(out, *from.parts[0]);
                out.code.push_back({op::jump, false, fork});
                out.code[fork].to = end_of(out);
                break;
            }
            std::vector<std::uint32_t> forks;
            for (std::size_t i = from.low; i < *from.high; ++i) {
                forks.push_back(end_of(out));
                out.code.push_back({op::fork});
                write(out, *from.parts[0]);
            }
            for (auto const fork : forks)
                out.code[fork].to = end_of(out);
            break;
        }
        case tree::kind::look: out.code.push_back({op::look, from.step.is_negative, write_part(*from.parts[0])}); break;
        }
    }

    /// Returns which part it is.
    std::uint32_t write_part(tree const& from)
    {
        pattern::part out;
        write(out, from);
        out.code.push_back({op::done});
        out.sources.resize(out.code.size());
        for (std::uint32_t i = 0; i < out.code.size(); ++i) {
            auto const what = out.code[i].what;
            if (what == op::fork || what == op::jump)
                out.sources[out.code[i].to].push_back(i);
            if (what != op::consume && what != op::jump && what != op::done)
                out.sources[i + 1].push_back(i);
        }
        into_.parts_.push_back(std::move(out));
        return static_cast<std::uint32_t>(into_.parts_.size() - 1);
    }

    pattern& into_;
    pattern::limits const& limits_;
    std::u32string text_;
    std::size_t at_ = 0;
};

pattern::pattern(std::string_view expression) : pattern(expression, limits())
{
}

pattern::pattern(std::string_view expression, limits const& limits)
{
    pattern_compiler(*this, expression, limits).run();
}

std::size_t pattern::size() const noexcept
{
    std::size_t total = 0;
    for (auto const& each : parts_)
        total += each.code.size();
    return total;
}

// Goes through the text from its end. At each character it knows of every instruction whether the end can be reached
// from there; that needs only what it knew one character later, and answers look-ahead on the way.
bool pattern::is_in(std::string_view utf8) const
{
    using op = instruction::kind;
    auto const text = code_points(utf8);
    std::vector<std::vector<char>> now;
    for (auto const& each : parts_)
        now.emplace_back(each.code.size(), char(false));
    auto later = now;
    std::vector<std::uint32_t> fresh;

    for (std::size_t i = text.size() + 1; i-- > 0;) {
        std::swap(now, later);
        bool const is_border = (i > 0 && is_word(text[i - 1])) != (i < text.size() && is_word(text[i]));
        auto const leads_on = [&](instruction const& from) {
            switch (from.what) {
            case op::begin: return i == 0;
            case op::end: return i == text.size();
            case op::word_border: return is_border;
            case op::no_word_border: return !is_border;
            case op::look: return bool(now[from.to].front()) != from.is_negative;
            default: return true;
            }
        };
        for (std::size_t p = 0; p < parts_.size(); ++p) {
            auto const& code = parts_[p].code;
            auto& can = now[p];
            for (std::uint32_t k = 0; k < code.size(); ++k) {
                bool is_reached = code[k].what == op::done;
                if (code[k].what == op::consume && i < text.size() && later[p][k + 1])
                    is_reached = std::ranges::any_of(sets_[code[k].to], [point = text[i]](range const& each) {
                        return each.first <= point && point <= each.last;
                    });
                can[k] = is_reached;
                if (is_reached)
                    fresh.push_back(k);
            }
            while (!fresh.empty()) {
                auto const to = fresh.back();
                fresh.pop_back();
                for (auto const from : parts_[p].sources[to]) {
                    if (can[from] || !leads_on(code[from]))
                        continue;
                    can[from] = true;
                    fresh.push_back(from);
                }
            }
        }
        if (now.back().front())
            return true;
    }
    return false;
}

}
