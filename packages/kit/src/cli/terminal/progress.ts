import type { Terminal } from './terminal.ts';

export interface Progress {
  advance(count?: number): void;
  end(): void;
}

const BAR_WIDTH = 24;
/** Redrawing faster than this only costs time. */
const REDRAW_MS = 80;

/** One line on standard error that redraws itself on a terminal; elsewhere a line at the start and at the end. */
export function startProgress(label: string, total: number, { stderr }: Pick<Terminal, 'stderr'>): Progress {
  const live = stderr.isTTY;
  let done = 0;
  let drawnAtMs = Number.NEGATIVE_INFINITY;
  let ended = false;
  const draw = (): void => {
    drawnAtMs = performance.now();
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const filled = Math.round(share * BAR_WIDTH);
    stderr.write(`\r${label} [${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${done}/${total}`);
  };
  if (live) draw();
  else stderr.write(`${label}: ${total} to do\n`);
  return {
    advance(count = 1) {
      done += count;
      if (live && performance.now() - drawnAtMs >= REDRAW_MS) draw();
    },
    end() {
      if (ended) return;
      ended = true;
      if (live) {
        draw();
        stderr.write('\n');
      } else stderr.write(`${label}: ${done} done\n`);
    },
  };
}
