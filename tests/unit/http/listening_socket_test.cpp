#include "loopback.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/un.h>

namespace belay::http {

namespace {

sockaddr_un unix_address(std::string const& path)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
}

/// A listening unix socket of somebody else.
descriptor listen_at(std::string const& path)
{
    descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto const address = unix_address(path);
    EXPECT_EQ(::bind(made.get(), reinterpret_cast<sockaddr const*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(made.get(), 1), 0);
    return made;
}

class ListeningSocket : public Loopback {
protected:
    ListeningSocket()
    {
        auto pattern = (std::filesystem::temp_directory_path() / "belay_listen_XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        path_ = (folder_ / "server.sock").string();
        settings_.listen = {"unix:" + path_};
    }
    ~ListeningSocket() override
    {
        stop();
        std::filesystem::remove_all(folder_);
    }

    client connect_unix()
    {
        client peer{client::unix_socket{}};
        auto const address = unix_address(path_);
        peer.connect_to(reinterpret_cast<sockaddr const*>(&address), sizeof address);
        return peer;
    }
    std::string start_error()
    {
        base::io_loop loop(clock_);
        try {
            server const made({&loop}, settings_, *this, {});
        } catch (std::runtime_error const& error) {
            return error.what();
        }
        return "";
    }

    std::filesystem::path folder_;
    std::string path_;
};

/// Makes descriptor 3 what a service manager passes on, and puts back what was there.
class InheritedSocket : public ListeningSocket {
protected:
    InheritedSocket() : before_(::fcntl(3, F_DUPFD_CLOEXEC, 100)) { settings_.listen = {"systemd"}; }
    ~InheritedSocket() override
    {
        stop();
        for (auto const* const name : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"})
            ::unsetenv(name);
        if (before_ >= 0) {
            ::dup2(before_, 3);
            ::close(before_);
        }
    }
    void pass_on(descriptor socket, int pid = ::getpid())
    {
        if (socket.get() == 3) {
            static_cast<void>(socket.release());
        } else {
            ASSERT_EQ(::dup2(socket.get(), 3), 3);
        }
        ::setenv("LISTEN_FDS", "1", 1);
        ::setenv("LISTEN_PID", std::to_string(pid).c_str(), 1);
    }
    static descriptor tcp_at(in_addr_t address, bool listens = true)
    {
        descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(address);
        EXPECT_EQ(::bind(made.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where), 0);
        if (listens) {
            EXPECT_EQ(::listen(made.get(), 8), 0);
        }
        return made;
    }

private:
    int before_;
};

std::string get_with(std::string_view fields)
{
    return "GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n";
}

}

TEST(ParseListenUnix, TakesAPath)
{
    auto const parsed = parse_listen("unix:/run/belay.sock");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->kind, listen_address::kind::unix_socket);
    EXPECT_EQ(parsed->path, "/run/belay.sock");
    EXPECT_EQ(parsed->reach(), reach::file_system);
    EXPECT_TRUE(parse_listen("unix:" + std::string(107, 'a')));
    EXPECT_FALSE(parse_listen("unix:" + std::string(108, 'a')));
    EXPECT_FALSE(parse_listen("unix:"));
}

TEST(ParseListenUnix, TellsWhoReachesAnAddress)
{
    EXPECT_EQ(parse_listen("127.0.0.1:1")->reach(), reach::loopback);
    EXPECT_EQ(parse_listen("[::1]:1")->reach(), reach::loopback);
    EXPECT_EQ(parse_listen("0.0.0.0:1")->reach(), reach::everyone);
    EXPECT_EQ(parse_listen("systemd")->reach(), std::nullopt);
}

TEST_F(ListeningSocket, ServesOnAUnixSocket)
{
    start(2);
    EXPECT_EQ(server_->names(), std::vector<std::string>{"unix:" + path_});
    for (int i = 0; i < 8; ++i) {
        auto peer = connect_unix();
        EXPECT_EQ(status_of(peer.ask(plain_get)), 200u);
        EXPECT_EQ(status_of(peer.ask(plain_get)), 200u);
    }
}

TEST_F(ListeningSocket, GivesItsFileTheModeOfTheSetting)
{
    settings_.unix_mode = 0620;
    start();
    struct stat file{};
    ASSERT_EQ(::stat(path_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0620u);
}

TEST_F(ListeningSocket, RemovesItsFileWhenItStops)
{
    start();
    EXPECT_TRUE(std::filesystem::exists(path_));
    stop();
    EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ListeningSocket, LeavesTheFileOfItsSuccessor)
{
    start();
    ASSERT_TRUE(std::filesystem::remove(path_));
    auto const successor = listen_at(path_);
    stop();
    EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ListeningSocket, TakesThePlaceOfAServerThatIsGone)
{
    listen_at(path_); // closed at once; its file stays
    ASSERT_TRUE(std::filesystem::exists(path_));
    start();
    EXPECT_EQ(status_of(connect_unix().ask(plain_get)), 200u);
}

TEST_F(ListeningSocket, LeavesThePlaceOfAServerThatAnswers)
{
    auto const other = listen_at(path_);
    EXPECT_TRUE(has(start_error(), "in use")) << start_error();
    // Also one whose queue is full by now.
    EXPECT_TRUE(has(start_error(), "in use"));
    EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ListeningSocket, LeavesAFileThatIsNoSocket)
{
    std::ofstream(path_) << "precious";
    EXPECT_TRUE(has(start_error(), "not a socket")) << start_error();
    EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(ListeningSocket, SaysWhyItCannotListen)
{
    settings_.listen = {"unix:" + (folder_ / "none" / "x.sock").string()};
    EXPECT_TRUE(has(start_error(), "No such file")) << start_error();
    settings_.listen = {};
    EXPECT_TRUE(has(start_error(), "--listen")) << start_error();
}

TEST_F(ListeningSocket, ListensAtSeveralPlaces)
{
    settings_.listen.emplace_back("127.0.0.1:0");
    start(2);
    EXPECT_EQ(server_->names().size(), 2u);
    EXPECT_EQ(status_of(connect_unix().ask(plain_get)), 200u);
    EXPECT_EQ(status_of(connect().ask(plain_get)), 200u);
    EXPECT_EQ(statistics().accepted, 2u);
}

TEST_F(ListeningSocket, TrustsNoPageThatComesThroughAFile)
{
    // A browser does not open unix sockets: the page of a loopback name came through a proxy, from some other machine.
    settings_.listen.emplace_back("127.0.0.1:0");
    settings_.policy.allow_host = {"mcp.example"};
    start();
    auto const page = get_with("Host: localhost\r\nOrigin: http://localhost:5173\r\n");
    EXPECT_EQ(status_of(connect_unix().ask(page)), 403u);
    EXPECT_EQ(status_of(connect().ask(page)), 200u);
    EXPECT_EQ(status_of(connect_unix().ask(get_with("Host: mcp.example\r\nOrigin: http://mcp.example\r\n"))), 200u);
    EXPECT_EQ(status_of(connect_unix().ask(get_with("Host: evil.example\r\n"))), 403u);
}

TEST_F(ListeningSocket, TellsAStreamThatItsPeerIsGone)
{
    hold_requests();
    start();
    auto peer = connect_unix();
    peer.send(plain_get);
    auto const stream = take_held();
    ASSERT_TRUE(stream);
    recorder seen;
    on_loop([&] {
        stream->begin_stream({200, {}, {}}, seen);
        stream->out() += "abc";
        stream->flush();
        // Nobody has read it: at least that much is not acknowledged.
        EXPECT_GE(stream->unacknowledged(), 3u);
    });
    EXPECT_TRUE(has(peer.read_until("abc"), "200 OK"));
    on_loop([&] { EXPECT_FALSE(stream->peer_gone()); });
    peer.close();
    EXPECT_EQ(seen.wait_closed(), stream_end::peer_gone);
}

TEST_F(InheritedSocket, IsServed)
{
    pass_on(tcp_at(INADDR_LOOPBACK));
    start(2);
    EXPECT_EQ(::getenv("LISTEN_FDS"), nullptr) << "programs that we start must not take it for theirs";
    EXPECT_NE(server_->local_endpoint().port(), 0);
    EXPECT_EQ(status_of(connect().ask(plain_get)), 200u);
}

TEST_F(InheritedSocket, KeepsItsFile)
{
    pass_on(listen_at(path_));
    start();
    EXPECT_EQ(server_->names(), std::vector<std::string>{"unix:" + path_});
    EXPECT_EQ(status_of(connect_unix().ask(plain_get)), 200u);
    stop();
    EXPECT_TRUE(std::filesystem::exists(path_)) << "it belongs to the service manager";
}

TEST_F(InheritedSocket, IsNotTakenFromAnotherProcess)
{
    EXPECT_TRUE(has(start_error(), "no sockets")) << start_error();
    pass_on(tcp_at(INADDR_LOOPBACK), 1);
    EXPECT_TRUE(has(start_error(), "no sockets")) << start_error();
    ::close(3);
}

TEST_F(InheritedSocket, MustListen)
{
    pass_on(tcp_at(INADDR_LOOPBACK, false));
    EXPECT_TRUE(has(start_error(), "ListenStream"));
}

TEST_F(InheritedSocket, NeedsHostNamesWhereEveryoneComes)
{
    pass_on(tcp_at(INADDR_ANY));
    EXPECT_TRUE(has(start_error(), "--allow-host"));
}

}
