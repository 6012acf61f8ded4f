/** What happens when a response does not match its schema: an error instead of it, a line in the log and a count, or nothing. */
export const RESPONSE_CHECKS = ['error', 'log', 'off'] as const;
export type ResponseChecks = (typeof RESPONSE_CHECKS)[number];
