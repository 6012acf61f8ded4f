import { oneLine } from '../one-line.ts';

/** One thing wrong with server.toml: the key that would fix it, and a sentence that never quotes a secret. */
export interface Problem {
  readonly key: string;
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

export function describeProblem(path: string, problem: Problem): string {
  return oneLine(`${path}: ${problem.key === '' ? '' : `${problem.key}: `}${problem.message}`);
}
