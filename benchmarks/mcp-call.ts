// What does a tool call cost next to the HTTP request of the same operation: CPU of the server, whole, and without what the protocol library
// takes by itself for a tool that does nothing? And what does the list of 200 tools cost next to JSON.stringify of it, all pages together?
// The library's own share is measured in this process, without a server; lists are measured over HTTP, so that the credential, the throttles
// and the protocol are part of them. The bounds are what plain use of version 2.4.0 of the library reaches. Most of a
// call is its HTTP entry: web streams, requests and responses as objects, a message that is validated several times. A transport of our own would
// save a quarter, and be a second implementation of the protocol. They are set again with each newer version.
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { defineBenchmark, type BenchmarkContext } from './harness/benchmark.ts';
import { median } from './harness/contest.ts';
import { cpuContest } from './harness/cpu-contest.ts';
import { requestsPerSecond, type HttpLoad } from './harness/http-load.ts';
import { cpuPerOperation } from './harness/loop.ts';
import type { Ratio } from './harness/ratio.ts';
import { startServer } from './harness/server-process.ts';
import { MANY_TOOLS, ORDER, STORED_ORDER, TOKEN, WANTED } from './servers/mcp-order.ts';

const SCRIPT = new URL('./servers/mcp-kit.ts', import.meta.url);
const headers = {
  authorization: `Bearer ${TOKEN}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};
const message = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
const CALL = JSON.stringify(message('tools/call', { name: 'order_create', arguments: WANTED }));

async function calls(context: BenchmarkContext): Promise<Ratio[]> {
  const servers = { http: await startServer(SCRIPT), mcp: await startServer(SCRIPT) };
  try {
    const load = (url: string, body: string, expectStatus: number): HttpLoad => ({ url, method: 'POST', headers, body, expectStatus });
    const { cpuMicros } = await cpuContest(context, [
      {
        name: 'HTTP request',
        server: servers.http,
        load: (seconds) => requestsPerSecond(load(`http://127.0.0.1:${servers.http.port}/v1/orders`, JSON.stringify(WANTED), 201), seconds),
      },
      {
        name: 'tool call',
        server: servers.mcp,
        load: (seconds) => requestsPerSecond(load(`http://127.0.0.1:${servers.mcp.port}/mcp`, CALL, 200), seconds),
      },
    ]);
    const [http = Number.NaN, mcp = Number.NaN] = cpuMicros.values();
    const library = await libraryCpu(context);
    context.print(`the protocol library alone, for a tool that does nothing: ${library.toFixed(1)} µs`);
    return [
      { name: 'mcp-call-cpu', value: mcp / http, goal: 5, atMost: true },
      { name: 'mcp-call-own-cpu', value: (mcp - library) / http, goal: 3, atMost: true },
    ];
  } finally {
    for (const server of Object.values(servers)) await server.stop();
  }
}

/** One message through the library, with a tool that returns a constant. */
async function libraryCpu({ quick }: BenchmarkContext): Promise<number> {
  const tool = { name: 'order_create', description: 'Place an order', inputSchema: ORDER, outputSchema: STORED_ORDER };
  const stored = { id: 'order-1', ...WANTED };
  const result = { content: [{ type: 'text' as const, text: JSON.stringify(stored) }], structuredContent: stored };
  const handler = createMcpHandler(() => {
    const server = new Server({ name: 'bench', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({ tools: [tool] as never }));
    server.setRequestHandler('tools/call', () => server.projectCallToolResult(result, STORED_ORDER as never));
    return server;
  });
  const parsedBody = JSON.parse(CALL) as object;
  const once = async (): Promise<void> => {
    const response = await handler.fetch(new Request('http://127.0.0.1/mcp', { method: 'POST', headers }), { parsedBody });
    if (response.status !== 200) throw new Error(`the library answers ${response.status}`);
    await response.text();
  };
  const times = quick ? 200 : 2000;
  await cpuPerOperation(once, times);
  const measured: number[] = [];
  for (let round = 0; round < 5; round += 1) measured.push(await cpuPerOperation(once, times));
  await handler.close();
  return median(measured);
}

async function lists(context: BenchmarkContext): Promise<Ratio[]> {
  const server = await startServer(SCRIPT, { args: ['list'] });
  try {
    const ask = async (cursor?: string) => {
      const response = await fetch(`http://127.0.0.1:${server.port}/mcp`, {
        method: 'POST',
        headers,
        body: JSON.stringify(message('tools/list', cursor === undefined ? {} : { cursor })),
      });
      const text = await response.text();
      // The versions of 2025 answer with one event.
      const line =
        text
          .split('\n')
          .find((each) => each.startsWith('data: '))
          ?.slice('data: '.length) ?? text;
      return JSON.parse(line) as { result: { tools: object[]; nextCursor?: string } };
    };
    const all = async (): Promise<object[]> => {
      const tools: object[] = [];
      let cursor: string | undefined;
      do {
        const { result } = await ask(cursor);
        tools.push(...result.tools);
        cursor = result.nextCursor;
      } while (cursor !== undefined);
      return tools;
    };
    const tools = await all();
    if (tools.length !== MANY_TOOLS) throw new Error(`${tools.length} tools are listed`);
    const times = context.quick ? 20 : 200;
    for (let round = 0; round < times; round += 1) await all();
    const before = await server.cpuMicros();
    for (let round = 0; round < times; round += 1) await all();
    const whole = ((await server.cpuMicros()) - before) / times;
    const stringify = () => JSON.stringify({ tools });
    await cpuPerOperation(stringify, times);
    const text = await cpuPerOperation(stringify, times * 5);
    context.print(`tools/list of ${tools.length}: ${whole.toFixed(0)} µs of the server, JSON.stringify ${text.toFixed(0)} µs`);
    return [{ name: 'mcp-list-vs-stringify', value: whole / text, goal: 5, atMost: true }];
  } finally {
    await server.stop();
  }
}

export default defineBenchmark({
  name: 'mcp-call',
  question: 'CPU of a tool call and of tools/list, against the HTTP request of the same operation and JSON.stringify of the list',
  async run(context) {
    return [...(await calls(context)), ...(await lists(context))];
  },
});
