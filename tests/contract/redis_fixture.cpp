#include "contract/redis_fixture.hpp"

#include "store/redis_reply.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace belay::store {

redis_server::redis_server(std::vector<std::string> arguments) : arguments_(std::move(arguments))
{
    auto pattern = (std::filesystem::temp_directory_path() / "belay_redis_XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
        throw std::runtime_error("no temporary directory");
    folder_ = pattern;
    socket_ = (folder_ / "socket").string();
    start();
}

redis_server::~redis_server()
{
    kill();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
}

void redis_server::start()
{
    std::vector<std::string> words{
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        socket_,
        "--dir",
        folder_.string(),
        "--save",
        "",
        "--appendonly",
        "no",
        "--logfile",
        (folder_ / "log").string(),
        "--daemonize",
        "no"};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (auto& each : words)
        argv.push_back(each.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it ends with the test, however that ends
        if (auto const nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC); nothing >= 0) {
            ::dup2(nothing, 0);
            ::dup2(nothing, 1);
        }
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    if (pid_ < 0)
        throw std::runtime_error("no process for redis-server");
    auto const give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < give_up) {
        if (int status = 0; ::waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            throw std::runtime_error("redis-server does not start; scripts/setup installs it");
        }
        if (auto const said = ask({"PING"}); said == "PONG" || said.starts_with("NOAUTH"))
            return;
        std::this_thread::sleep_for(std::chrono::milliseconds(5)); // nothing tells when its socket is there
    }
    throw std::runtime_error("redis-server does not answer; its log is in " + folder_.string());
}

void redis_server::kill()
{
    if (pid_ < 0)
        return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    std::error_code ignored;
    std::filesystem::remove(socket_, ignored);
}

void redis_server::pause()
{
    ::kill(pid_, SIGSTOP);
}

void redis_server::go_on()
{
    ::kill(pid_, SIGCONT);
}

std::string redis_server::ask(std::vector<std::string> const& words) const
{
    auto* const context = redisConnectUnix(socket_.c_str());
    if (!context)
        return "no memory";
    if (context->err != 0) {
        std::string why = context->errstr;
        redisFree(context);
        return why;
    }
    std::vector<char const*> starts;
    std::vector<std::size_t> sizes;
    for (auto const& each : words) {
        starts.push_back(each.data());
        sizes.push_back(each.size());
    }
    redis_reply const reply(static_cast<redisReply*>(
        redisCommandArgv(context, static_cast<int>(words.size()), starts.data(), sizes.data())));
    std::string said;
    if (!reply)
        said = context->errstr;
    else if (reply->type == REDIS_REPLY_INTEGER)
        said = std::to_string(reply->integer);
    else
        said = reply_view(reply.get()).string();
    redisFree(context);
    return said;
}

redis_place redis_server::place() const
{
    redis_place place;
    place.addresses.push_back({{}, 0, socket_});
    return place;
}

redis_server& shared_redis()
{
    static redis_server server;
    return server;
}

}
