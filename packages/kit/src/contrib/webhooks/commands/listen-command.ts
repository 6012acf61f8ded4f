import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command as CommanderCommand } from 'commander';
import type { CommandContext } from '../../../app/declare/command.ts';
import type { App } from '../../../app/declare/module.ts';
import { wholeNumberOption } from '../../../app/declare/command-options.ts';
import { checkAll } from '../../../errors/fault-collector.ts';
import { nodeHttp } from '../../../http/exchange/node-http.ts';
import { InvalidSecret, parseSecret } from '../signing/secret.ts';
import { stopSignal } from '../../../work/stop-signal.ts';
import { InvalidSignature, verifySignature } from '../receiving/verify.ts';

type Context = CommandContext<App>;

/** More than any event holds; a development server need not read further. */
const BODY_BYTES_MAX = 20 * 1024 * 1024;

export function addListen(command: CommanderCommand, context: Context): void {
  command
    .command('listen')
    .description('a receiver on this machine that verifies deliveries and prints them, for development')
    .option('--port <port>', 'where to listen; 0 for any free port', '8787')
    .option('--status <code>', 'status code for genuine deliveries, to see retries', '204')
    .addHelpText('after', '\nThe signing secret is asked for, or is the first line of standard input; it is never an argument.')
    .action(async (options: { port: string; status: string }) => {
      const { port, status } = checkAll({
        port: () => wholeNumberOption('--port', options.port, 0, 65_535),
        status: () => wholeNumberOption('--status', options.status, 200, 599),
      });
      const secret = checkedSecret(context, await context.secret('Signing secret'));
      const server = nodeHttp.createServer((request, response) => void receive(context, secret, status, request, response));
      const stopped = stopSignal();
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
      context.print(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      await stopped.signal;
      stopped.forget();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
}

function checkedSecret(context: Context, text: string): string {
  try {
    parseSecret(text);
    return text;
  } catch (error) {
    if (!(error instanceof InvalidSecret)) throw error;
    return context.fail(error.message);
  }
}

async function receive(
  context: Context,
  secret: string,
  status: number,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const body = await readBody(request);
    const { id } = verifySignature(secret, request.headers, body);
    report(context, { verified: true, id, body: body.toString('utf8') });
    response.writeHead(status).end();
  } catch (error) {
    const reason = error instanceof InvalidSignature ? error.reason : (error as Error).message;
    report(context, { verified: false, reason });
    response.writeHead(401).end();
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function report(context: Context, received: { verified: true; id: string; body: string } | { verified: false; reason: string }): void {
  if (context.json) context.print(JSON.stringify(received));
  else context.print(received.verified ? `verified ${received.id} ${received.body}` : `refused (${received.reason})`);
}
