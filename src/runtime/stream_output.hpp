// The output of a call that has a stream: performs the producer machine's actions on the store. It does not know the
// connection that started the call: connections come and go. What others have to say to the call comes to it as letters
// in the store. It may go on with a stream that another call had: one run of a request after another.
//
// What the store could not answer is asked again, for as long as the process lives.
#pragma once

#include "runtime/paced_output.hpp"
#include "store/ports.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace belay::runtime {

/// The bulletin that a call waits for somebody to go on with it.
constexpr std::string_view released_word = "released";

class stream_output final : public paced_output {
public:
    stream_output(
        node_context& context, base::loop& loop, store::stream_key stream, store::fence fence,
        engine::flow_settings const& flow, std::size_t requests);
    ~stream_output() override;

    /// Answers to questions under a key are kept, for another run of the call.
    void keep_answers() noexcept { keeps_answers_ = true; }

    void begin(std::weak_ptr<output_user> user) override;
    /// In the place of begin(), on a stream that was taken over: what the former run has asked and nobody has answered
    /// is withdrawn, what was answered under a key is known, and the client is told `notice`. `ready` is called when
    /// that is so, unless the user has heard of an end first.
    void go_on(
        std::weak_ptr<output_user> user, store::claimed_call const& from, std::string notice,
        std::move_only_function<void()> ready);
    /// Hears of its reader and takes what was sent to the call, from the beginning on. After begin(), and after the
    /// handler's first run: what has come to its end by then has nothing to hear.
    void listen();

    [[nodiscard]] std::optional<store::stream_id> stream() const noexcept override { return stream_.stream; }
    std::uint64_t
    ask(std::uint32_t request, std::string_view method, std::string_view params, std::string_view key,
        answered done) override;
    void withdraw(std::uint64_t question) override;
    void relay_question(std::string message, std::move_only_function<void()> failed) override;
    void close_connection(std::chrono::milliseconds retry) override;
    void release(std::move_only_function<void()> done) override;

private:
    void write(engine::append_events& batch) override;
    void dismiss_reader() override;
    void settle(engine::asked const& asked) override;
    void close_request(std::uint32_t request) override;
    void close() override;

    [[nodiscard]] std::shared_ptr<stream_output> self();
    void watch();
    void hint(store::event_store::interest what);
    void read_reader();
    void read_mail();
    void open_letter(store::letter letter);
    /// A client's answer, as JSON text. A second one, or one to an unknown question, is ignored.
    void take_answer(std::uint64_t question, std::string response);
    void tell_withdrawn(std::uint64_t question);
    void append();
    /// A question is not asked again of whoever reads the stream later.
    void blank(std::uint64_t sequence);
    void blanked(std::uint64_t sequence);
    void give_up_stream();
    void ask_again();

    store::stream_key stream_;
    store::fence fence_;
    question_ledger questions_;
    bool keeps_answers_ = false;
    std::map<std::string, std::string, std::less<>> given_answers_; // to a former run, by their keys
    std::vector<std::uint64_t> left_open_; // by a former run, and not blank yet
    std::move_only_function<void()> ready_;
    std::move_only_function<void()> released_;
    struct relay {
        std::uint64_t ticket;
        std::move_only_function<void()> failed;
    };
    std::vector<relay> relays_; // not in the log yet
    std::unique_ptr<store::watch_handle> watch_;
    // The append under way, kept because it may have to be repeated.
    struct appending {
        std::vector<store::event_data> events;
        bool finish = false;
        base::time_point began{};
    };
    appending appending_;
    std::uint64_t batch_number_ = 0; // of the appends
    std::uint64_t end_ = 0; // of the stream, as far as is known here
    std::uint64_t last_letter_ = 0;
    bool is_reading_reader_ = false;
    bool has_reader_moved_ = false; // since it was asked for
    bool is_reading_mail_ = false;
    bool has_more_mail_ = false;
    // What the store could not say.
    bool appends_again_ = false;
    bool releases_again_ = false;
    bool reads_mail_again_ = false;
    bool reads_reader_again_ = false;
    std::vector<std::uint64_t> blanks_again_;
    base::timer again_;
};

}
