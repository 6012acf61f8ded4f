import { fileURLToPath } from 'node:url';

/** Frames of the toolkit itself say nothing about the user's mistake. */
const TOOLKIT = new URL('../../..', import.meta.url).href;

/** Lines of source that a syntax error shows around its place. */
const SOURCE_LINES_MAX = 4;

/** Where in the user's own files an error comes from, as lines below its message; empty where its stack does not show it. */
export function errorPlace(error: unknown): string {
  if (!(error instanceof Error) || error.stack === undefined) return '';
  const lines = error.stack.split('\n');
  return syntaxPlace(lines) ?? framePlace(lines) ?? '';
}

/** The stack of a syntax error begins with the file and line, the source, and a mark below it. */
function syntaxPlace([first = '', ...rest]: readonly string[]): string | undefined {
  const file = /^(?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*:\d+$/.test(first) ? pathOf(first) : undefined;
  if (file === undefined) return undefined;
  const end = rest.findIndex((line) => line === '' || /^\w*Error\b/.test(line));
  const source = rest.slice(0, Math.min(end < 0 ? 0 : end, SOURCE_LINES_MAX));
  return [`\n  at ${file}`, ...source.map((line) => `    ${line}`)].join('\n');
}

/** The first frame that is neither Node's nor of a package. */
function framePlace(lines: readonly string[]): string | undefined {
  const frames = lines.flatMap((line) => /^\s+at (?:.*\()?((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/]).*?:\d+:\d+)\)?$/.exec(line)?.[1] ?? []);
  const own = frames.find((frame) => !frame.includes('/node_modules/') && !frame.startsWith(TOOLKIT));
  return own === undefined ? undefined : `\n  at ${pathOf(own)}`;
}

function pathOf(place: string): string {
  const [, file = place, position = ''] = /^(.*?)((?::\d+)+)$/.exec(place) ?? [];
  return (file.startsWith('file://') ? fileURLToPath(file) : file) + position;
}
