import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { LoadFailure } from '../document/load-failure.ts';
import { parseCommit, type Commit, type CommitObject } from './commit.ts';
import { gitFailure } from './git-failure.ts';
import { ObjectReader } from './object-reader.ts';
import { refFiles, resolveRef } from './ref.ts';
import { gitEnvironment, type ProgramVariables } from './run-environment.ts';
import { parseTree, treeName, type Tree, type TreeEntry } from './tree.ts';
import { verifyCommit, type Signers } from './verify-commit.ts';

/** The `[git]` table, checked. */
export interface GitSettings extends Signers {
  /** As the operator wrote it; shown in messages. */
  readonly repository: string;
  /** The folder with `objects` and `refs`: the repository itself when it is bare, else its `.git`. */
  readonly gitDirectory: string;
  /** The full name of the branch; undefined with `pin` alone. */
  readonly ref: string | undefined;
  readonly pin: string | undefined;
  readonly variables: ProgramVariables;
}

/** Where GnuPG has public keys: today, before version 2.1, and with its key daemon. */
const KEYRINGS = ['pubring.kbx', 'pubring.gpg', 'public-keys.d/pubring.db'];

/** A branch may move, and its old commit may be pruned, while a commit is read. */
const ATTEMPTS_MAX = 3;

/** The files of one commit, and where to read them. */
export interface Snapshot {
  readonly commit: Commit;
  /** The entry at a path of the repository; undefined when there is none. Symbolic links and submodules are not followed. */
  entry(path: string): Promise<TreeEntry | undefined>;
  content(entry: TreeEntry, path: string): Promise<Buffer>;
}

/** A local Git repository as a source of files. Reads only; everything a load gets comes from one commit. */
export class GitRepository {
  readonly settings: GitSettings;
  /** The commit of the reload that is under way. Dropped with the git process, so the next reload verifies its commit again. */
  #current: { readonly key: string; readonly snapshot: Promise<Snapshot> } | undefined;

  constructor(settings: GitSettings) {
    this.settings = settings;
  }

  /** Files whose change may mean another commit, or another verdict on its signature. */
  get watchedPaths(): readonly string[] {
    const { gitDirectory, ref, pin } = this.settings;
    return [...(pin === undefined && ref !== undefined ? refFiles(gitDirectory, ref) : []), ...this.#signerFiles()];
  }

  /** These change when objects arrive: a load that failed because one was missing may succeed now. */
  get arrivalPaths(): readonly string[] {
    return ['objects/', 'objects/pack/', 'FETCH_HEAD'].map((name) => join(this.settings.gitDirectory, name));
  }

  /** Who is trusted is written here. */
  #signerFiles(): readonly string[] {
    const { allowedSigners, gnupgHome } = this.settings;
    return [
      ...(allowedSigners === undefined ? [] : [allowedSigners]),
      ...(gnupgHome === undefined ? [] : KEYRINGS.map((name) => join(gnupgHome, name))),
    ];
  }

  /** Reads from the commit that the branch has now. A branch that moves meanwhile is read again. */
  async read<Result>(use: (snapshot: Snapshot) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      const id = await this.#commitId();
      try {
        return await use(await this.#snapshot(id));
      } catch (error) {
        if (attempt === ATTEMPTS_MAX || (await this.#commitId()) === id) throw error;
      }
    }
  }

  #commitId(): string | Promise<string> {
    const { pin, ref, gitDirectory, repository } = this.settings;
    return pin ?? resolveRef(gitDirectory, ref!, repository);
  }

  async #snapshot(id: string): Promise<Snapshot> {
    const key = [id, ...(await Promise.all(this.#signerFiles().map(identity)))].join(' ');
    if (this.#current?.key !== key) {
      const snapshot = this.#open(id, () => {
        if (this.#current?.snapshot === snapshot) this.#current = undefined;
      });
      this.#current = { key, snapshot };
      snapshot.catch(() => {
        if (this.#current?.snapshot === snapshot) this.#current = undefined;
      });
    }
    return this.#current.snapshot;
  }

  async #open(id: string, onIdle: () => void): Promise<Snapshot> {
    const { repository, gitDirectory, variables, allowedSigners, gnupgHome } = this.settings;
    const environment = gitEnvironment(join(gitDirectory, 'objects'), id, variables);
    const reader = new ObjectReader({ repository, environment, onIdle });
    const commit = parseCommit(id, await reader.read(id, 'commit', `commit ${id}`));
    if (commit === undefined) throw gitFailure(repository, `commit ${id} cannot be parsed`);
    if ((allowedSigners ?? gnupgHome) !== undefined) {
      const verdict = await verifyCommit(id, { allowedSigners, gnupgHome }, environment);
      if (typeof verdict === 'object')
        throw gitFailure(repository, `the signature of commit ${id} cannot be verified: ${verdict.obstacle}`);
      if (verdict === 'bad') throw untrusted(repository, id);
    }
    return new CommitFiles(commit, reader, repository);
  }
}

class CommitFiles implements Snapshot {
  readonly commit: Commit;
  readonly #root: string;
  readonly #reader: ObjectReader;
  readonly #repository: string;
  readonly #trees = new Map<string, Promise<Tree>>();

  constructor({ tree, ...commit }: CommitObject, reader: ObjectReader, repository: string) {
    this.commit = commit;
    this.#root = tree;
    this.#reader = reader;
    this.#repository = repository;
  }

  async entry(path: string): Promise<TreeEntry | undefined> {
    let entry: TreeEntry = { kind: 'folder', id: this.#root };
    for (const name of path.split('/')) {
      // A link or a submodule on the way is the answer: the caller reports it.
      if (entry.kind !== 'folder') return entry.kind === 'file' ? undefined : entry;
      const next: TreeEntry | undefined = (await this.#tree(entry.id)).get(treeName(name));
      if (next === undefined) return undefined;
      entry = next;
    }
    return entry;
  }

  content({ id }: TreeEntry, path: string): Promise<Buffer> {
    return this.#reader.read(id, 'blob', `the content of ${path}`);
  }

  #tree(id: string): Promise<Tree> {
    let tree = this.#trees.get(id);
    if (tree === undefined) {
      tree = this.#readTree(id);
      this.#trees.set(id, tree);
    }
    return tree;
  }

  async #readTree(id: string): Promise<Tree> {
    const what = `a folder of commit ${this.commit.id}`;
    const tree = parseTree(await this.#reader.read(id, 'tree', what), id.length === 64 ? 32 : 20);
    if (tree === undefined) throw gitFailure(this.#repository, `${what} cannot be parsed`);
    return tree;
  }
}

function untrusted(repository: string, id: string): LoadFailure {
  return gitFailure(
    repository,
    `commit ${id} has no good signature of a trusted key; sign it, or add its key to git.allowed_signers or git.gnupg_home`,
  );
}

async function identity(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? 'missing' : `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`;
}
