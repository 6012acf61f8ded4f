const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Resolves `signal` when the process is told to stop, which then does not end it at once. */
export function stopSignal(onStop: () => void = () => undefined): { readonly signal: Promise<void>; forget(): void } {
  let stop = onStop;
  const signal = new Promise<void>((resolve) => {
    stop = () => {
      onStop();
      resolve();
    };
  });
  for (const name of SIGNALS) process.on(name, stop);
  return {
    signal,
    forget() {
      for (const name of SIGNALS) process.off(name, stop);
    },
  };
}
