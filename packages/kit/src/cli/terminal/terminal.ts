import { styleText } from 'node:util';

/** Where a run of the program reads and writes; the process's own streams outside tests. */
export interface Terminal {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

type Style = 'red' | 'green' | 'yellow' | 'dim' | 'bold';

/** Coloured on a terminal, plain in a pipe or a file; NO_COLOR and FORCE_COLOR are obeyed. */
export function paint(style: Style, text: string, stream: NodeJS.WriteStream): string {
  return styleText(style, text, { stream, validateStream: true });
}

/** Columns as wide as their longest cell; the last one is never padded, so lines do not end in spaces. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return [line(head), ...rows.map(line)];
}

/** A line and what belongs to it. */
export interface Branch {
  readonly text: string;
  readonly below?: readonly Branch[];
}

/** The lines of a tree, each below the one it belongs to. A text of several lines stays in its place. */
export function tree({ text, below = [] }: Branch): string[] {
  return [
    ...text.split('\n'),
    ...below.flatMap((branch, index) => {
      const isLast = index === below.length - 1;
      return tree(branch).map((line, row) => `${row === 0 ? (isLast ? '└─ ' : '├─ ') : isLast ? '   ' : '│  '}${line}`);
    }),
  ];
}
