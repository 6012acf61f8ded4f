import type { Where } from './where.ts';

/** A condition that is false or unknown. A class of its own, so that no JSON of a client can be one. */
export class NotTrue {
  readonly of: unknown;

  constructor(of: unknown) {
    this.of = of;
  }
}

/** The rows that a condition does not match: also those for which it is unknown, which `not` leaves out. */
export function notTrue(where: Where | boolean): Where {
  return new NotTrue(where);
}
