/** Where code gets the time from, so that tests can decide it. */
export interface Clock {
  now(): Date;
}

export const systemClock: Clock = Object.freeze({ now: () => new Date() });
