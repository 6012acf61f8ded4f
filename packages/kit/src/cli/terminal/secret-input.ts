import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CliFailure } from './cli-failure.ts';
import type { Terminal } from './terminal.ts';

/**
 * A secret from a person or a pipe, never from the arguments: those are visible to every user of the machine and kept
 * in shell histories. On a terminal it is asked for twice and not echoed; from a pipe it is the first line.
 */
export async function readSecret(label: string, terminal: Terminal): Promise<string> {
  if (!terminal.stdin.isTTY) return firstLine(terminal, label);
  const first = await ask(`${label}: `, terminal);
  if ((await ask(`${label} again: `, terminal)) !== first) throw new CliFailure('The two inputs differ; nothing was changed.');
  return first;
}

async function firstLine({ stdin }: Terminal, label: string): Promise<string> {
  const lines = createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY });
  try {
    for await (const line of lines) return line;
  } finally {
    lines.close();
  }
  throw new CliFailure(`${label} expected on standard input, which is empty.`);
}

async function ask(question: string, { stdin, stderr }: Terminal): Promise<string> {
  stderr.write(question);
  // readline edits the line; its echo goes nowhere.
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: true });
  try {
    return await new Promise<string>((answer, refuse) => {
      lines.once('line', answer);
      lines.once('SIGINT', () => refuse(new CliFailure('Interrupted; nothing was changed.')));
      lines.once('close', () => refuse(new CliFailure('Interrupted; nothing was changed.')));
    });
  } finally {
    lines.close();
    stderr.write('\n');
  }
}
