/** The API key that `kit mcp` calls tools with. */
export function keyFromEnvironment(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  const key = environment['KIT_API_KEY'];
  return key === undefined || key.trim() === '' ? undefined : key.trim();
}
