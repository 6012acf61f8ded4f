/** Whether a dialog waits for an answer: the focus stays in it, and no other opens over it. */
export const isAsking = (): boolean => document.querySelector('[role="dialog"][aria-modal="true"]') !== null;
