#include "store/redis_connection.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace belay::store {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t read_bytes = 64 * 1024;

struct free_reader {
    void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
};

}

std::shared_ptr<asio::ssl::context> make_redis_tls(redis_tls const& tls)
{
    auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
    error_code error;
    auto const check = [&](char const* what, std::string const& file) {
        if (error)
            throw std::runtime_error(fmt::format("{} {} cannot be used: {}", what, file, error.message()));
    };
    made->set_verify_mode(asio::ssl::verify_peer);
    if (tls.ca_file.empty())
        made->set_default_verify_paths(error);
    else
        made->load_verify_file(tls.ca_file, error);
    check("the certificates of authorities in", tls.ca_file);
    if (!tls.certificate_file.empty()) {
        made->use_certificate_chain_file(tls.certificate_file, error);
        check("the client's certificate in", tls.certificate_file);
        made->use_private_key_file(
            tls.key_file.empty() ? tls.certificate_file : tls.key_file, asio::ssl::context::pem, error);
        check("the client's key in", tls.key_file.empty() ? tls.certificate_file : tls.key_file);
    }
    return made;
}

std::string redis_bytes(std::span<std::string const> words)
{
    std::vector<char const*> starts;
    std::vector<std::size_t> sizes;
    for (auto const& each : words) {
        starts.push_back(each.data());
        sizes.push_back(each.size());
    }
    char* made = nullptr;
    auto const size = redisFormatCommandArgv(&made, static_cast<int>(words.size()), starts.data(), sizes.data());
    if (size < 0)
        throw std::bad_alloc();
    std::string bytes(made, static_cast<std::size_t>(size));
    redisFreeCommand(made);
    return bytes;
}

struct redis_connection::state {
    using executor = base::io_loop::executor_type;
    using socket = asio::basic_stream_socket<asio::generic::stream_protocol, executor>;
    using resolver = asio::ip::basic_resolver<asio::ip::tcp, executor>;

    state(redis_connection& self, base::io_loop& loop, settings settings, events& told)
        : self(self), set(std::move(settings)), told(&told), names(loop.executor()), plain(loop.executor()),
          reader(redisReaderCreate()), deadline(loop.timers(), [this] { lose("it did not answer in time"); })
    {
        if (set.tls)
            tls.emplace(plain, *set.tls);
    }

    /// Runs with what keeps the connection alive, unless it is closed.
    template<class F>
    auto kept(F step)
    {
        return [this, keep = self.shared_from_this(), step = std::move(step)](auto const&... outcome) {
            if (told)
                step(outcome...);
        };
    }

    void lose(std::string const& why)
    {
        auto const keep = self.shared_from_this();
        if (auto* const whom = told) {
            self.close();
            whom->on_lost(why);
        }
    }

    // --- until it is ready

    void start()
    {
        deadline.after(set.timeout);
        if (!set.address.path.empty()) {
            ends.push_back(asio::local::stream_protocol::endpoint(set.address.path));
            return connect();
        }
        names.async_resolve(
            set.address.host, std::to_string(set.address.port),
            kept([this](error_code const& error, resolver::results_type const& found) {
                if (error)
                    return lose("its name was not found: " + error.message());
                for (auto const& each : found)
                    ends.push_back(asio::generic::stream_protocol::endpoint(each.endpoint()));
                connect();
            }));
    }
    void connect()
    {
        if (next_end >= ends.size())
            return lose(last_error);
        error_code ignored;
        plain.close(ignored);
        auto const& end = ends[next_end++];
        plain.async_connect(end, kept([this](error_code const& error) {
                                if (error) {
                                    last_error = "it cannot be connected to: " + error.message();
                                    return connect();
                                }
                                if (set.address.path.empty()) {
                                    error_code quiet;
                                    plain.set_option(asio::ip::tcp::no_delay(true), quiet);
                                    plain.set_option(asio::socket_base::keep_alive(true), quiet);
                                }
                                if (tls)
                                    shake_hands();
                                else
                                    greet();
                            }));
    }
    void shake_hands()
    {
        auto const& name = set.server_name.empty() ? set.address.host : set.server_name;
        SSL_set_tlsext_host_name(tls->native_handle(), name.c_str());
        tls->set_verify_callback(asio::ssl::host_name_verification(name));
        tls->async_handshake(asio::ssl::stream_base::client, kept([this](error_code const& error) {
                                 if (error)
                                     return lose("TLS failed: " + error.message());
                                 greet();
                             }));
    }
    void greet()
    {
        read();
        if (set.greeting.empty())
            return be_ready();
        // Redis closes the connection of whoever says much before it has said who it is, and then nobody learns why.
        auto const begins_with = set.greeting[0][0] == "AUTH" ? std::size_t(1) : set.greeting.size();
        say(0, begins_with);
    }
    void say(std::size_t begin, std::size_t end)
    {
        std::string bytes;
        for (auto i = begin; i < end; ++i)
            bytes += redis_bytes(set.greeting[i]);
        said = end;
        write(std::move(bytes));
    }
    void hear_greeting(redis_reply heard)
    {
        if (reply_view const reply(heard.get()); reply.is_error())
            return lose(fmt::format("{}: {}", set.greeting[greeted.size()][0], reply.text()));
        greeted.push_back(std::move(heard));
        if (greeted.size() == set.greeting.size())
            be_ready();
        else if (greeted.size() == said)
            say(said, set.greeting.size());
    }
    void be_ready()
    {
        is_ready = true;
        deadline.cancel();
        if (!told->on_ready(greeted))
            return lose("it is not what was looked for");
        greeted.clear();
    }

    // --- bytes

    template<class Step>
    void on_stream(Step const& step)
    {
        if (tls)
            step(*tls);
        else
            step(plain);
    }
    void read()
    {
        on_stream([this](auto& stream) {
            stream.async_read_some(asio::buffer(buffer), kept([this](error_code const& error, std::size_t size) {
                                       if (error)
                                           return lose("the connection ended: " + error.message());
                                       redisReaderFeed(reader.get(), buffer.data(), size);
                                       if (take_replies())
                                           read();
                                   }));
        });
    }
    bool take_replies()
    {
        for (;;) {
            void* made = nullptr;
            if (redisReaderGetReply(reader.get(), &made) != REDIS_OK) {
                lose(fmt::format("what it says is not the protocol: {}", reader->errstr));
                return false;
            }
            if (!made)
                return true;
            redis_reply reply(static_cast<redisReply*>(made));
            if (is_ready)
                told->on_reply(std::move(reply));
            else if (greeted.size() < set.greeting.size())
                hear_greeting(std::move(reply));
            else
                lose("it answered what nobody had asked");
            if (!told)
                return false;
        }
    }
    void write(std::string bytes)
    {
        if (unwritten.empty())
            unwritten = std::move(bytes);
        else
            unwritten += bytes;
        if (!is_writing)
            write_some();
    }
    void write_some()
    {
        is_writing = true;
        writing = std::exchange(unwritten, {});
        on_stream([this](auto& stream) {
            asio::async_write(stream, asio::buffer(writing), kept([this](error_code const& error, std::size_t) {
                                  is_writing = false;
                                  if (error)
                                      return lose("the connection ended: " + error.message());
                                  if (!unwritten.empty())
                                      write_some();
                              }));
        });
    }

    redis_connection& self;
    settings set;
    events* told; // null: closed
    resolver names;
    socket plain;
    std::optional<asio::ssl::stream<socket&>> tls;
    std::unique_ptr<redisReader, free_reader> reader;
    base::timer deadline;
    std::vector<asio::generic::stream_protocol::endpoint> ends;
    std::size_t next_end = 0;
    std::string last_error = "it has no address";
    std::vector<redis_reply> greeted;
    std::size_t said = 0; // of the greeting
    std::array<char, read_bytes> buffer;
    std::string writing;
    std::string unwritten;
    bool is_writing = false;
    bool is_ready = false;
};

redis_connection::redis_connection(base::io_loop& loop, settings settings, events& told)
    : state_(std::make_unique<state>(*this, loop, std::move(settings), told))
{
}

redis_connection::~redis_connection() = default;

void redis_connection::start()
{
    state_->start();
}

void redis_connection::write(std::string bytes)
{
    if (state_->told)
        state_->write(std::move(bytes));
}

void redis_connection::close()
{
    state_->told = nullptr;
    state_->is_ready = false;
    state_->deadline.cancel();
    state_->names.cancel();
    error_code ignored;
    state_->plain.close(ignored);
}

bool redis_connection::is_ready() const noexcept
{
    return state_->is_ready;
}

redis_address const& redis_connection::address() const noexcept
{
    return state_->set.address;
}

}
