CREATE TABLE products (
	id       bigint PRIMARY KEY,
	name     text   NOT NULL,
	category text   NOT NULL,
	cents    bigint NOT NULL,
	stock    bigint NOT NULL CHECK (stock >= 0)
);

CREATE TABLE orders (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer   bigint NOT NULL,
	product_id bigint NOT NULL REFERENCES products,
	count      bigint NOT NULL
);
