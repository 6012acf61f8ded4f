/** Where code gets the time from, so that tests can decide it. */
export interface Clock {
  /** The current time. */
  now(): Date;
}

export const systemClock: Clock = Object.freeze({ now: () => new Date() });
