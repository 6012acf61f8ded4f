import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const levels: Readonly<Record<number, readonly [string, Style]>> = {
  10: ['TRACE', 'gray'],
  20: ['DEBUG', 'gray'],
  30: ['INFO', 'green'],
  40: ['WARN', 'yellow'],
  50: ['ERROR', 'red'],
  60: ['FATAL', 'redBright'],
};
/** Not shown on a terminal. */
const hidden = new Set(['level', 'time', 'msg', 'pid', 'hostname']);

/** One JSON record as a line for people: time, level, message, then the other members; an error's stack on lines of its own. */
export function prettyLine(record: string): string {
  let members: Record<string, unknown>;
  try {
    members = JSON.parse(record) as Record<string, unknown>;
  } catch {
    return record;
  }
  const [name, style] = levels[members['level'] as number] ?? ['LOG', 'white'];
  const time = new Date(members['time'] as number | string);
  const clock = Number.isNaN(time.getTime())
    ? ''
    : `${time.toTimeString().slice(0, 8)}.${String(time.getMilliseconds()).padStart(3, '0')} `;
  const { err } = members as { err?: { readonly stack?: unknown; readonly message?: unknown } };
  const facts = Object.entries(members)
    .filter(([key]) => !hidden.has(key) && key !== 'err')
    .map(([key, value]) => `${styleText('gray', `${key}=`)}${typeof value === 'string' ? visible(value) : JSON.stringify(value)}`);
  const head = `${styleText('gray', clock)}${styleText(style, name.padEnd(5))} ${visible(textOf(members['msg'] ?? ''))}`;
  const trace = err === undefined ? '' : `\n${visible(textOf(err.stack ?? err.message ?? err), '\n')}`;
  return `${head}${facts.length === 0 ? '' : `  ${facts.join(' ')}`}${trace}\n`;
}

/** A record may hold a client's text: it must not move the cursor or colour the terminal. */
function visible(text: string, allowed = ''): string {
  return text.replaceAll(/\p{Cc}/gu, (character) =>
    allowed.includes(character) ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
