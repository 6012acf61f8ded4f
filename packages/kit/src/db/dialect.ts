/** The two databases the toolkit speaks. */
export type Dialect = 'sqlite' | 'postgres';
