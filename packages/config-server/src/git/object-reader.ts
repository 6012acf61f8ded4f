import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { gitFailure } from './git-failure.ts';

export type ObjectType = 'commit' | 'tree' | 'blob';

/** A larger object is a mistake or an attack; files of the disk have the same limit. */
const OBJECT_BYTES_MAX = 16 * 1024 * 1024;
/** A header is an object id, a type and a size. */
const HEADER_BYTES_MAX = 256;
/** Sections of one reload follow each other closely; then the process ends. */
const LINGER_MS = 100;
const DEADLINE_MS = 30_000;
const LINE_FEED = 10;

interface Header {
  readonly type: string;
  readonly bytes: number;
}

/** What the next bytes of the process mean: a header, and after it the content where that was asked for. */
interface Waiting {
  readonly wantsContent: boolean;
  readonly resolve: (answer: { readonly header: Header | undefined; readonly content: Buffer }) => void;
  readonly reject: (error: Error) => void;
}

export interface ObjectReaderOptions {
  readonly repository: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
  /** The process has nothing left to read and ends. */
  readonly onIdle?: () => void;
}

/**
 * Reads objects through one `git cat-file` process, which is started when it is needed and ends soon after. Requests are object ids
 * only: no name from a repository ever reaches a command line. Each object is hashed again, so an object store that was tampered with
 * cannot pass other content for a commit that was pinned or signed.
 */
export class ObjectReader {
  readonly #options: ObjectReaderOptions;
  readonly #waiting: Waiting[] = [];
  /** It has no streams when there is no free file descriptor; its error follows. */
  #process: ChildProcess | undefined;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  #header: Header | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #linger: NodeJS.Timeout | undefined;

  constructor(options: ObjectReaderOptions) {
    this.#options = options;
  }

  /** The content of an object; fails when it is missing, of another type, too large or damaged. */
  async read(id: string, type: ObjectType, what: string): Promise<Buffer> {
    const { repository } = this.#options;
    const { header } = await this.#ask(`info ${id}\n`, false);
    if (header === undefined) throw gitFailure(repository, `${what} is missing from the repository; fetch it completely`);
    if (header.type === 'tag') throw gitFailure(repository, `${what} is a tag; set the commit that git rev-parse <tag>^{commit} prints`);
    if (header.type !== type) throw gitFailure(repository, `${what} is not a ${type}`);
    if (header.bytes > OBJECT_BYTES_MAX) throw gitFailure(repository, `${what} is larger than ${OBJECT_BYTES_MAX / 1024 / 1024} MiB`);
    const { header: again, content } = await this.#ask(`contents ${id}\n`, true);
    if (again?.type !== type || hashOf(id, type, content) !== id)
      throw gitFailure(repository, `${what} is damaged: its content does not have its hash`);
    return content;
  }

  #ask(command: string, wantsContent: boolean): Promise<{ readonly header: Header | undefined; readonly content: Buffer }> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ wantsContent, resolve, reject });
      clearTimeout(this.#linger);
      // Keeps the process alive while something is awaited; the streams of git do not.
      this.#deadline ??= setTimeout(() => this.#fail('git did not respond in time'), this.#options.deadlineMs ?? DEADLINE_MS);
      try {
        this.#process ??= this.#start();
        this.#process.stdin?.write(command);
      } catch (error) {
        this.#fail(cannotRun(error));
      }
    });
  }

  #start(): ChildProcess {
    const git: ChildProcess = spawn('git', ['cat-file', '--batch-command'], {
      env: this.#options.environment,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const isCurrent = (): boolean => this.#process === git;
    git.once('error', (error) => {
      if (isCurrent()) this.#fail(cannotRun(error));
    });
    git.once('close', () => {
      if (isCurrent()) this.#fail('git ended unexpectedly; it must be version 2.36 or later, and the objects must be readable');
    });
    git.stdin?.on('error', () => undefined);
    git.stdout?.on('data', (chunk: Buffer) => {
      if (isCurrent()) this.#receive(chunk);
    });
    git.unref();
    for (const stream of [git.stdin, git.stdout]) (stream as { unref?: () => void } | null)?.unref?.();
    return git;
  }

  #receive(chunk: Buffer): void {
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    this.#deadline?.refresh();
    let progress = true;
    while (progress && this.#waiting.length > 0) progress = this.#step();
    if (this.#waiting.length > 0) return;
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => this.#end(), LINGER_MS);
    this.#linger.unref();
  }

  /** Uses up one header, or one content; false when more bytes are needed. */
  #step(): boolean {
    const [waiting] = this.#waiting as [Waiting];
    if (this.#header === undefined) {
      const line = this.#line();
      if (line === undefined) return false;
      const [, type = '', bytes = ''] = line.split(' ');
      const header = /^\d+$/.test(bytes) ? { type, bytes: Number(bytes) } : undefined;
      if (header === undefined || !waiting.wantsContent) this.#answer(waiting, header, Buffer.alloc(0));
      else this.#header = header;
      return true;
    }
    if (this.#receivedBytes <= this.#header.bytes) return false;
    const all = this.#collected();
    const content = all.subarray(0, this.#header.bytes);
    this.#keep(all.subarray(this.#header.bytes + 1));
    this.#answer(waiting, this.#header, content);
    return true;
  }

  #answer(waiting: Waiting, header: Header | undefined, content: Buffer): void {
    this.#waiting.shift();
    this.#header = undefined;
    waiting.resolve({ header, content });
  }

  #line(): string | undefined {
    const all = this.#collected();
    const end = all.indexOf(LINE_FEED);
    if (end === -1 && all.length > HEADER_BYTES_MAX) this.#fail('git sent something that is not an object');
    if (end === -1) return undefined;
    this.#keep(all.subarray(end + 1));
    return all.toString('latin1', 0, end);
  }

  /** What was received and not used yet, in one piece. */
  #collected(): Buffer {
    if (this.#received.length !== 1) this.#received = [Buffer.concat(this.#received)];
    return this.#received[0]!;
  }

  #keep(rest: Buffer): void {
    this.#received = rest.length === 0 ? [] : [rest];
    this.#receivedBytes = rest.length;
  }

  #fail(message: string): void {
    const failed = this.#waiting.splice(0);
    this.#process?.kill('SIGKILL');
    // Another process may have the other end: one that a wrapper of git started.
    this.#process?.stdout?.destroy();
    this.#end();
    for (const { reject } of failed) reject(gitFailure(this.#options.repository, message));
  }

  #end(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#linger);
    this.#deadline = undefined;
    this.#process?.stdin?.end();
    this.#process = undefined;
    this.#header = undefined;
    this.#keep(Buffer.alloc(0));
    this.#options.onIdle?.();
  }
}

function cannotRun(error: unknown): string {
  return `git cannot be run (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}); install git 2.36 or later`;
}

function hashOf(id: string, type: ObjectType, content: Buffer): string {
  return createHash(id.length === 64 ? 'sha256' : 'sha1')
    .update(`${type} ${content.length}\0`)
    .update(content)
    .digest('hex');
}
