import { RemoteSourceError } from './errors.ts';
import type { StandardIssue } from './standard-schema.ts';

/**
 * The document does not satisfy the schema. The message names key paths only: several schema libraries quote the offending value in
 * their messages, and here that value may be a password. `issues()` returns them to a caller who decides to look.
 * A method, because printing an error with hidden properties calls its getters.
 */
export class DocumentMismatch extends RemoteSourceError {
  override readonly name = 'DocumentMismatch';
  readonly #issues: readonly StandardIssue[];

  constructor(section: string, issues: readonly StandardIssue[]) {
    super('mismatch', `the document of ${section} does not satisfy the schema at: ${[...new Set(issues.map(pathOf))].join(', ')}`);
    this.#issues = issues;
  }

  issues(): readonly StandardIssue[] {
    return this.#issues;
  }
}

function pathOf({ path = [] }: StandardIssue): string {
  const segments = path.map((part) => String(typeof part === 'object' ? part.key : part).replaceAll(/[\\.]/g, '\\$&'));
  return segments.length === 0 ? '(the whole document)' : segments.join('.');
}
