import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from './temporary-folder.ts';

const AUTHOR = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
};

/** A clone to commit in, for tests. The real git, without the configuration of the machine. */
export class TestRepository {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  git(...args: readonly string[]): string {
    return this.gitWith({}, ...args);
  }

  gitWith(environment: Readonly<Record<string, string>>, ...args: readonly string[]): string {
    const env = {
      PATH: process.env['PATH'],
      HOME: this.folder,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      ...AUTHOR,
      ...environment,
    };
    return execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], { cwd: this.folder, env, stdio: ['pipe', 'pipe', 'pipe'] })
      .toString()
      .trim();
  }

  /** Writes files (null removes one) and commits them. Returns the id of the commit. */
  commit(files: Readonly<Record<string, string | null>>, ...options: readonly string[]): string {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.folder, name);
      mkdirSync(dirname(path), { recursive: true });
      if (text === null) rmSync(path);
      else writeFileSync(path, text);
    }
    this.git('add', '--all', '.');
    this.git('commit', '--quiet', '--allow-empty', '--message', 'change', ...options);
    return this.git('rev-parse', 'HEAD');
  }
}

export async function testRepository(...options: readonly string[]): Promise<TestRepository> {
  const repository = new TestRepository(await temporaryFolder());
  repository.git('init', '--quiet', '--initial-branch=main', ...options);
  return repository;
}

export const OPERATOR_TOKEN = 'operator-token-0123456789-0123456789';
export const SERVICE_TOKEN = 'billing-token-0123456789-0123456789';

/** A server.toml that serves billing/prod from a repository, to a service and to an operator. */
export function gitToml(repository: string, table = 'branch = "main"', files = '["billing.toml", "more.yaml"]', extra = ''): string {
  return `
[git]
repository = "${repository}"
${table}

[server]
bind = "127.0.0.1:0"
watch_debounce_ms = 20
${extra}

[[server.sections]]
application = "billing"
profile = "prod"
files = ${files}

[[server.clients]]
name = "billing-service"
token = "${SERVICE_TOKEN}"
applications = ["billing"]

[[server.clients]]
name = "operator"
token = "${OPERATOR_TOKEN}"
applications = ["billing"]
operator = true
`;
}

export const GIT_FILES = {
  'billing.toml': '[billing]\nname = "one"\nsecret = "hunter2"\n',
  'more.yaml': 'billing:\n  pool: { size: 1 }\n',
};
