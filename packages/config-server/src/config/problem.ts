import { oneLine } from '../one-line.ts';

/** One problem of server.toml. No part of it ever holds a token, a key byte or a configuration value. */
export interface Problem {
  /** The key that would fix it, such as `server.clients[1].token`. */
  readonly key: string;
  /** The client or section that the key belongs to, such as `client "billing-service"`; absent where there is none. */
  readonly subject?: string;
  /** What is wrong, and what to do. Never contains a secret. */
  readonly message: string;
}

/** Everything that keeps the server from starting, found in one run. */
export class StartRefusal extends Error {
  readonly path: string;
  readonly problems: readonly Problem[];

  constructor(path: string, problems: readonly Problem[]) {
    super(problems.map((problem) => describeProblem(path, problem)).join('\n'));
    this.name = 'StartRefusal';
    this.path = path;
    this.problems = problems;
  }

  get lines(): string[] {
    return this.problems.map((problem) => describeProblem(this.path, problem));
  }
}

export function describeProblem(path: string, { key, subject, message }: Problem): string {
  const place = subject === undefined ? key : `${key} (${subject})`;
  return oneLine(`${path}: ${place === '' ? '' : `${place}: `}${message}`);
}
