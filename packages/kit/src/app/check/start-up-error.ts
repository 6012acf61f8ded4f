import type { Fault } from '../../options/fault.ts';

/** Thrown by `createApp` or `ready()` with every fault at once. */
export class StartUpError extends Error {
  readonly code = 'start_up_failed';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    const lines = faults.map(({ id, message, hint }) => `  ${id}  ${message}${hint === undefined ? '' : ` ${hint}`}`);
    super(`The app cannot start, ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}:\n${lines.join('\n')}`);
    this.name = 'StartUpError';
    this.faults = faults;
  }
}

export function isError(fault: Fault): boolean {
  return fault.id.startsWith('E');
}
