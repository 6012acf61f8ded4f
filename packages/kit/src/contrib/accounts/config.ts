/** What the environment says about accounts. */
export function accountsEnvironment(environment: NodeJS.ProcessEnv = process.env): { readonly development: boolean } {
  return { development: environment['NODE_ENV'] === 'development' };
}
