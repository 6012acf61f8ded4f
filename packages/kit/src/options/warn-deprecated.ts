import { type DeprecationCode, type DeprecationNotice, deprecationNotices } from './deprecation-codes.ts';

const warned = new Set<DeprecationCode>();

/**
 * A `DeprecationWarning` with a code of its own, once per process. Node prints it with the place; `--no-deprecation` silences it,
 * `--throw-deprecation` makes it an error, and `process.on('warning')` gets it with its `code`.
 */
export function warnDeprecated(
  code: DeprecationCode,
  notices: Readonly<Record<DeprecationCode, DeprecationNotice>> = deprecationNotices,
): void {
  const notice = notices[code];
  if (notice === undefined || warned.has(code)) return;
  warned.add(code);
  const { title, since, removal, remedy } = notice;
  process.emitWarning(`${title} is deprecated since ${since} and goes away in ${removal}. ${remedy}`, {
    type: 'DeprecationWarning',
    code,
    detail: 'docs/reference/deprecations.md',
  });
}
