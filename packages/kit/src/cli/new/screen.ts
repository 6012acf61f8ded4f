import { styleText } from 'node:util';
import type { NewProject } from './new-project.ts';
import { relative } from 'node:path';

type Style = 'green' | 'dim' | 'bold' | 'red';

/** What a person sees while a project is created: one line per step, then what to do next. */
export class Screen {
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stream, validateStream: true });
  }

  /** Shows that the step runs; a line is added when it is done. A failed step leaves no line: its error says more. */
  readonly step = async <T>(label: string, work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const stop = this.#stream.isTTY ? this.#spin(label) : () => undefined;
    const result = await work().finally(stop);
    const seconds = (performance.now() - began) / 1000;
    this.#stream.write(`${this.paint('green', '✓')} ${label}${seconds < 1 ? '' : this.paint('dim', ` (${Math.round(seconds)} s)`)}\n`);
    return result;
  };

  #spin(label: string): () => void {
    const frames = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
    let frame = 0;
    const draw = (): void => void this.#stream.write(`\r\u001B[2K${frames[frame++ % frames.length]} ${label} …`);
    draw();
    const timer = setInterval(draw, 100);
    return () => {
      clearInterval(timer);
      this.#stream.write('\r\u001B[2K');
    };
  }

  nextSteps({ folder, name }: NewProject, cwd: string, installed: boolean): void {
    const near = relative(cwd, folder);
    const path = near.startsWith('..') ? folder : near;
    const commands = [
      ...(path === '' ? [] : [[`cd ${/\s/.test(path) ? JSON.stringify(path) : path}`, '']]),
      ...(installed ? [] : [['npm install', '']]),
      ['npm run dev', 'serves the API and restarts it when a file changes'],
      ['npm test', 'checks the types and runs the tests'],
    ] as const;
    const width = Math.max(...commands.map(([command]) => command.length));
    this.#stream.write(`\n${this.paint('bold', `${name} is ready.`)} README.md explains what is in it. Next:\n\n`);
    for (const [command, does] of commands) this.#stream.write(`  ${`${command.padEnd(width)}  ${this.paint('dim', does)}`.trimEnd()}\n`);
    this.#stream.write('\n');
  }
}
