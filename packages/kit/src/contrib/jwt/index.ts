export { jwtBearer } from './jwt-bearer.ts';
export type { JwtBearerOptions } from './options.ts';
