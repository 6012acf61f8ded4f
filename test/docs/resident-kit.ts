import { globSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { KitProgram, type KitCommand } from '../../packages/kit/test/cli/kit-program.ts';

/**
 * Commands whose process is what a page shows: they serve, ask a terminal, or start others. `create-superuser` is on pages whose config imports its database
 * from a file of its own, which the command before has closed.
 */
const OWN_PROCESS = ['start', 'dev', 'shell', 'new', 'listen', 'work', '--loop', 'create-superuser'];

/** Hands a command line to the process that has loaded the toolkit already, and does what that says. */
const CLIENT = `
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
const [socket, ...args] = process.argv.slice(2);
// Passwords are the only thing that a command reads; another one must leave them to the next of its block.
const reads = args.includes('user') || args.includes('passwd');
const channel = connect(socket);
channel.end(JSON.stringify({ args, cwd: process.cwd(), environment: process.env, input: reads ? readFileSync(0, 'utf8') : '' }));
const { code, stdout, stderr } = JSON.parse(await text(channel));
process.stderr.write(stderr);
process.stdout.write(stdout);
process.exitCode = code;
`;

/**
 * The commands of a page in one process: loading the toolkit takes longer than most of them. The process is replaced when a file of the folder
 * changes, because it would go on with the modules that it has imported.
 */
export class ResidentKit {
  readonly #folder: string;
  readonly #socket: string;
  readonly #server: Server;
  #program: KitProgram | undefined;
  #files = '';
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string, scratch: string) {
    this.#folder = folder;
    this.#socket = join(scratch, 'kit.sock');
    writeFileSync(join(scratch, 'kit-client.mjs'), CLIENT);
    this.#server = createServer({ allowHalfOpen: true }, (channel) => {
      const run = this.#last.then(async () => channel.end(JSON.stringify(await this.#run(JSON.parse(await text(channel)) as KitCommand))));
      this.#last = run.catch((error: unknown) => channel.destroy(error as Error));
      channel.on('error', () => undefined);
    }).listen(this.#socket);
  }

  /** The program as a script for the shell: `real` is the command of a process of its own. */
  script(scratch: string, real: string): string {
    return `for word in "$@"; do for own in ${OWN_PROCESS.join(' ')}; do [ "$word" = "$own" ] && exec ${real} "$@"; done; done
exec node '${join(scratch, 'kit-client.mjs')}' '${this.#socket}' "$@"`;
  }

  async #run({ args, cwd, environment, input }: KitCommand): Promise<object> {
    const files = this.#fingerprint();
    if (files !== this.#files) await this.#end();
    this.#files = files;
    this.#program ??= new KitProgram(this.#folder);
    return this.#program.run(args, { cwd, input, environment });
  }

  /** Which files a config could import, and when each was written. */
  #fingerprint(): string {
    return globSync('**/*.{ts,mts,js,mjs,json}', { cwd: this.#folder, exclude: (path) => /node_modules|data/.test(path) })
      .map((path) => `${path} ${statSync(join(this.#folder, path)).mtimeMs}`)
      .join('\n');
  }

  async #end(): Promise<void> {
    const program = this.#program;
    this.#program = undefined;
    await program?.close();
  }

  async close(): Promise<void> {
    this.#server.close();
    await this.#end();
  }
}
