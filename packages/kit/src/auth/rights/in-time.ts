/** Functions of the application that take longer, such as a lookup at another service, have failed: what waits for them would wait forever. */
const TIME_MS_MAX = 5000;

export async function inTime<T>(subject: string, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`${subject} was not found within ${TIME_MS_MAX} ms`)), TIME_MS_MAX);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
