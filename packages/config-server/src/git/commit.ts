/** A commit as the server shows it. Names are text of whoever made the commit; they are only ever sent as JSON strings. */
export interface Commit {
  readonly id: string;
  /** Name and address, such as `Ada <ada@example.com>`. */
  readonly author: string;
  /** When the commit was made, by the clock of its author's machine. */
  readonly committedAt: number;
}

export interface CommitObject extends Commit {
  readonly tree: string;
}

const AUTHOR_CHARACTERS_MAX = 200;

/** Parses the header of a commit object; undefined when it is not one. */
export function parseCommit(id: string, content: Buffer): CommitObject | undefined {
  const text = content.toString();
  const end = text.indexOf('\n\n');
  const header = end === -1 ? text : text.slice(0, end);
  const tree = /^tree ([0-9a-f]+)$/m.exec(header)?.[1];
  // Old programs wrote time zones of more than four digits.
  const author = /^author (.*?)(?: \d+ [+-]\d+)?$/m.exec(header)?.[1];
  const committedAt = Number(/^committer .* (\d{1,11}) [+-]\d+$/m.exec(header)?.[1]) * 1000;
  if (!header.startsWith('tree ') || tree?.length !== id.length || author === undefined || Number.isNaN(committedAt)) return undefined;
  return { id, tree, author: author.slice(0, AUTHOR_CHARACTERS_MAX), committedAt };
}
