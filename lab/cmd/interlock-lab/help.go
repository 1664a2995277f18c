package main

import (
	"fmt"
	"io"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// helpTexts are what --help prints: of the whole lab (""), of search and of serve.
var helpTexts = map[string]story.Text{"": labHelp, "search": searchHelp, "serve": serveHelp}

// usage follows the list of experiments.
var usage = story.Text{
	EN: `interlock lab D3        runs an experiment
interlock lab --help    explains the other commands and the flags
`,
	ZH: `interlock lab D3        运行一个实验
interlock lab --help    说明其他命令和参数
`,
}

var labHelp = story.Text{
	EN: `Show on real servers how locks from articles fail, and how interlock behaves in the same events. The lab
starts the servers that it needs, and stops them at the end.

Usage:
  interlock lab                   list the experiments
  interlock lab D3 [D10 ...]      run these experiments
  interlock lab --all             run all experiments
  interlock lab search [D2 ...]   find the shortest schedules by which D1 to D6 fail
  interlock lab serve             serve a page on which you break locks yourself
  interlock lab help [COMMAND]    print the help of search or serve, or this one

Flags:
  --all             run all experiments
  --lang en|zh      language (default: that of the environment, otherwise en)
  -o text|json      format of the results (default text)
  --report FILE     write the results to FILE, as one page of HTML that plays them
  --wire            also print what interlock's clients sent, with the answers
  --listen ADDRESS  address of the page; see "interlock lab serve --help"
  -h, --help        print this help

Exit codes:
  0    every flaw appeared as expected, and the sound lock had none
  1    a result was not as expected
  64   wrong use
  69   a server is not installed: the message says what to install; the other experiments ran
  125  the lab itself failed
  130  the lab was interrupted
`,
	ZH: `在真实的服务器上演示文章里的锁如何失效，以及 interlock 在同样的事件中的表现。
所需的服务器由实验室启动，结束时关闭。

用法：
  interlock lab                   列出所有实验
  interlock lab D3 [D10 ...]      运行指定的实验
  interlock lab --all             运行所有实验
  interlock lab search [D2 ...]   找出让 D1 到 D6 失效的最短调度
  interlock lab serve             提供一个网页，让你自己动手弄坏锁
  interlock lab help [COMMAND]    输出 search 或 serve 的帮助；不写命令就输出本帮助

参数：
  --all             运行所有实验
  --lang en|zh      语言（默认取环境变量的语言，否则为 en）
  -o text|json      结果的格式（默认 text）
  --report FILE     把结果写入 FILE：一个可以播放的 HTML 网页
  --wire            同时输出 interlock 的客户端发送的内容和收到的应答
  --listen ADDRESS  网页的地址，见 interlock lab serve --help
  -h, --help        输出本帮助

退出码：
  0    所有缺陷都如预期重现，而且可靠的锁没有出错
  1    有一个结果与预期不符
  64   用法错误
  69   有服务器没有安装：消息会说明该安装什么；其他实验照常运行
  125  实验室自身出错
  130  运行被中断
`,
}

var searchHelp = story.Text{
	EN: `Find the shortest schedules by which the locks of D1 to D6 fail, with three clients and at most two faults,
and replay each on a real Redis. The same search in interlock's protocol finds none.

Usage:
  interlock lab search            search D1 to D6
  interlock lab search D2 [...]   search these exhibits

Flags:
  --lang en|zh   language (default: that of the environment, otherwise en)
  -o text|json   format of the results (default text)
  --report FILE  write the results to FILE, as one page of HTML that plays them
  -h, --help     print this help
`,
	ZH: `找出让 D1 到 D6 的锁失效的最短调度：三个客户端，最多两次故障。
找到的每个调度都会在真实的 Redis 上重放。用同样的方法搜索 interlock 的协议，找不到这样的调度。

用法：
  interlock lab search            搜索 D1 到 D6
  interlock lab search D2 [...]   只搜索指定的展品

参数：
  --lang en|zh   语言（默认取环境变量的语言，否则为 en）
  -o text|json   结果的格式（默认 text）
  --report FILE  把结果写入 FILE：一个可以播放的 HTML 网页
  -h, --help     输出本帮助
`,
}

var serveHelp = story.Text{
	EN: `Serve a page on which you break the locks of D1 to D6, and interlock, yourself. Drag a fault onto a step:
the lab plays the course on a real Redis, and the page shows what happened. Ctrl-C ends it.

The page starts programs on this machine, so it listens on a loopback address only.

Usage:
  interlock lab serve

Flags:
  --listen ADDRESS  loopback address of the page; port 0 chooses a free port (default 127.0.0.1:0)
  --lang en|zh      language of the page (default: that of the environment, otherwise en)
  -h, --help        print this help
`,
	ZH: `提供一个网页，让你自己动手弄坏 D1 到 D6 的锁和 interlock。把故障拖到某一步上，
实验室就在真实的 Redis 上运行整个过程，网页再展示发生了什么。按 Ctrl-C 结束。

网页会在本机上启动程序，所以只监听回环地址。

用法：
  interlock lab serve

参数：
  --listen ADDRESS  网页的回环地址；端口 0 表示任选一个空闲端口（默认 127.0.0.1:0）
  --lang en|zh      网页的语言（默认取环境变量的语言，否则为 en）
  -h, --help        输出本帮助
`,
}

// printHelp prints the help that was asked for.
func (s *settings) printHelp(stdout io.Writer) int {
	if _, err := fmt.Fprint(stdout, helpTexts[s.topic].In(s.lang)); err != nil {
		return exitFailed
	}
	return exitOK
}
