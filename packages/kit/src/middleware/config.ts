/** Where the environment says that developers look on. Anything else, and nothing at all, counts as production. */
export function isDevelopment(environment: NodeJS.ProcessEnv = process.env): boolean {
  return environment['NODE_ENV'] === 'development' || environment['NODE_ENV'] === 'test';
}
