/** Where the environment says that strangers look on: NODE_ENV is `production`. */
export function isProduction(environment: NodeJS.ProcessEnv = process.env): boolean {
  return environment['NODE_ENV'] === 'production';
}

/** Where the environment says that developers look on. Anything else, and nothing at all, counts as production. */
export function isDevelopment(environment: NodeJS.ProcessEnv = process.env): boolean {
  return environment['NODE_ENV'] === 'development' || environment['NODE_ENV'] === 'test';
}
