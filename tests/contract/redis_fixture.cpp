#include "contract/redis_fixture.hpp"

#include "store/redis_reply.hpp"
#include "store/redis_slot.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace belay::store {

redis_server::redis_server(std::vector<std::string> arguments, role what)
    : arguments_(std::move(arguments)), what_(what)
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
    std::vector<std::string> words{"redis-server"};
    if (what_ == role::store)
        words.insert(words.end(), {"--port", "0", "--save", "", "--appendonly", "no"});
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    words.insert(
        words.end(), {"--unixsocket", socket_, "--dir", folder_.string(), "--logfile", (folder_ / "log").string()});
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
    else if (reply->type == REDIS_REPLY_ARRAY)
        for (std::size_t i = 0; i < reply->elements; ++i)
            said += (i > 0 ? " " : "") + reply_view(reply.get())[i].string();
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

std::uint16_t free_port()
{
    auto const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket, raw, size) != 0 || ::getsockname(socket, raw, &size) != 0)
        throw std::runtime_error("no free port");
    ::close(socket);
    return ntohs(address.sin_port);
}

// --- a cluster

redis_cluster::redis_cluster()
{
    std::vector<std::uint16_t> buses;
    for (int i = 0; i < 3; ++i) {
        ports_.push_back(free_port());
        buses.push_back(free_port());
        nodes_.push_back(std::make_unique<redis_server>(std::vector<std::string>{
            "--bind", "127.0.0.1", "--port", std::to_string(ports_.back()), "--cluster-enabled", "yes",
            "--cluster-port", std::to_string(buses.back()), "--cluster-node-timeout", "2000"}));
    }
    constexpr int share = redis_slot_count / 3;
    for (int i = 0; i < 3; ++i) {
        auto& node = *nodes_[static_cast<std::size_t>(i)];
        auto const last = i == 2 ? redis_slot_count - 1 : (i + 1) * share - 1;
        node.ask({"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * share), std::to_string(last)});
        node.ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    for (std::size_t i = 1; i < 3; ++i)
        nodes_[0]->ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(ports_[i]), std::to_string(buses[i])});
    auto const give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (auto const& node : nodes_)
        for (;;) {
            auto const info = node->ask({"CLUSTER", "INFO"});
            if (info.find("cluster_state:ok") != std::string::npos
                && info.find("cluster_known_nodes:3") != std::string::npos)
                break;
            if (std::chrono::steady_clock::now() > give_up)
                throw std::runtime_error("no cluster came about");
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // nothing tells when it has
        }
}

redis_place redis_cluster::place() const
{
    redis_place place;
    place.what = redis_place::kind::cluster;
    for (auto const port : ports_)
        place.addresses.push_back({"127.0.0.1", port});
    return place;
}

std::size_t redis_cluster::owner_of(std::uint16_t slot) const
{
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i]->ask({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot)}) != "0")
            return i;
    throw std::runtime_error("nothing is in that slot");
}

void redis_cluster::begin_move(std::uint16_t slot, std::size_t to)
{
    auto const from = owner_of(slot);
    auto const name = std::to_string(slot);
    nodes_[to]->ask({"CLUSTER", "SETSLOT", name, "IMPORTING", nodes_[from]->ask({"CLUSTER", "MYID"})});
    nodes_[from]->ask({"CLUSTER", "SETSLOT", name, "MIGRATING", nodes_[to]->ask({"CLUSTER", "MYID"})});
}

void redis_cluster::move_keys(std::uint16_t slot, std::size_t to)
{
    auto const from = owner_of(slot);
    auto const keys = nodes_[from]->ask({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "1000"});
    std::vector<std::string> words{"MIGRATE", "127.0.0.1", std::to_string(ports_[to]), "", "0", "5000", "KEYS"};
    for (std::size_t begin = 0; begin < keys.size();) {
        auto const end = std::min(keys.find(' ', begin), keys.size());
        words.push_back(keys.substr(begin, end - begin));
        begin = end + 1;
    }
    if (auto const said = nodes_[from]->ask(words); said != "OK")
        throw std::runtime_error("keys could not be moved: " + said);
}

void redis_cluster::end_move(std::uint16_t slot, std::size_t to)
{
    auto const owner = nodes_[to]->ask({"CLUSTER", "MYID"});
    nodes_[to]->ask({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
    for (auto const& node : nodes_)
        node->ask({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
}

void redis_cluster::empty()
{
    for (auto const& node : nodes_)
        node->ask({"FLUSHALL"});
}

redis_cluster& shared_redis_cluster()
{
    static redis_cluster cluster;
    return cluster;
}

redis_server& shared_redis()
{
    static redis_server server;
    return server;
}

}
