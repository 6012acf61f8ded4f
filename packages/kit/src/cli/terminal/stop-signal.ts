/** The first signal; after it the default action is back, so a second one ends the process immediately. */
export async function stopSignal(): Promise<void> {
  await new Promise<void>((stop) => {
    const stopped = (): void => {
      process.off('SIGINT', stopped).off('SIGTERM', stopped);
      stop();
    };
    process.on('SIGINT', stopped).on('SIGTERM', stopped);
  });
}
