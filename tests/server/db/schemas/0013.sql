BEGIN TRANSACTION;
CREATE TABLE accounts (
	owner TEXT NOT NULL, 
	balance BIGINT, 
	spent BIGINT NOT NULL, 
	CONSTRAINT pk_accounts PRIMARY KEY (owner), 
	CONSTRAINT fk_accounts_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "accounts" VALUES('root',NULL,0);
INSERT INTO "accounts" VALUES('ada',5999997,3);
INSERT INTO "accounts" VALUES('robots',0,0);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0013');
CREATE TABLE attempt_secrets (
	run_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_attempt_secrets PRIMARY KEY (run_id, attempt), 
	CONSTRAINT fk_attempt_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "attempt_secrets" VALUES('run-47acb4aa38',1,X'7365616C6564');
CREATE TABLE browser_sessions (
	id TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_browser_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_browser_sessions_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "browser_sessions" VALUES('session-1',X'68617368','478bedf1e0',1.0,2.0);
CREATE TABLE calls (
	id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	owner TEXT NOT NULL, 
	user TEXT NOT NULL, 
	run_id TEXT, 
	model TEXT NOT NULL, 
	provider TEXT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cached_tokens BIGINT NOT NULL, 
	cost BIGINT, is_estimate BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_calls PRIMARY KEY (id)
);
INSERT INTO "calls" VALUES('1bbbe475bb14a49b6389',1.79488168903837013246e+09,'ada','ada',NULL,'parrot','scripted',1,1,0,3,0);
CREATE TABLE commit_marks (
	id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_commit_marks PRIMARY KEY (id)
);
INSERT INTO "commit_marks" VALUES('connection-1',1,1.0);
CREATE TABLE "creations" (
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	response BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_creations PRIMARY KEY (caller, "key")
);
INSERT INTO "creations" VALUES('f161ad414c','robots',X'01DEE69F0D1C13C07E4561AF11CA15DC100F13A3C4DF8D683D36F50EC0637213F34B4C0CDE155008767DD3B1935AE4DA68F68E9E8EBBAFED92A6DC25C61BF943571D0E1E6D538944AE436DAC0DBD8E6CF7576583813FA42220880E35C6410DE996C1BD95BBBF065915502F6AF822EE509ACACC9DF9696630C9FC1F00ACD358B53956257D03',1.7948816884297013283e+09);
CREATE TABLE dataset_versions (
	id TEXT NOT NULL, 
	dataset_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	format TEXT NOT NULL, 
	rows BIGINT, 
	columns JSON NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	pushed_at DOUBLE NOT NULL, 
	CONSTRAINT pk_dataset_versions PRIMARY KEY (id), 
	CONSTRAINT fk_dataset_versions_dataset_id FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE, 
	CONSTRAINT uq_dataset_versions_dataset_id_sha256 UNIQUE (dataset_id, sha256)
);
INSERT INTO "dataset_versions" VALUES('content-1','data-1',1,'0000000000000000000000000000000000000000000000000000000000000000',1,'jsonl',1,'["user_prompt"]','ada',1.0,1.0);
CREATE TABLE datasets (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_datasets PRIMARY KEY (id), 
	CONSTRAINT fk_datasets_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_datasets_owner_name UNIQUE (owner, name)
);
INSERT INTO "datasets" VALUES('data-1','ada','sums','private','',1.0,1.0);
CREATE TABLE entries (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	run_id TEXT, 
	reference TEXT NOT NULL, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT fk_entries_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_entries_reference UNIQUE (reference)
);
INSERT INTO "entries" VALUES('ent-8b34793877','ada','grant',5000000,NULL,'grant:82b5d3b3d6352cb26eea','welcome',1.79488168901061224936e+09);
INSERT INTO "entries" VALUES('ent-315f165a4c','ada','charge',-3,NULL,'calls:1bbbe475bb14a49b6389','',1.79488168907182788847e+09);
CREATE TABLE environments (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	visibility TEXT NOT NULL, 
	description TEXT NOT NULL, 
	tags JSON NOT NULL, 
	forked_from TEXT, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, run_policy TEXT, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT fk_environments_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT uq_environments_owner_name UNIQUE (owner, name)
);
INSERT INTO "environments" VALUES('env-14c33470ce','ada','sums','public','Says hello.','["hello", "small"]',NULL,1.79488168855639815334e+09,1.79488168861892628674e+09,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	event BLOB NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (run_id, seq), 
	CONSTRAINT fk_events_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('run-30cf1b36c3',1,X'7B22736571223A312C226174223A313739343838313638392E313732372C226B696E64223A22737461747573222C22737461747573223A2272756E6E696E67227D');
INSERT INTO "events" VALUES('run-30cf1b36c3',2,X'7B22736571223A322C226174223A312E302C226B696E64223A226C6F67222C226C6576656C223A22494E464F222C2274657874223A2268656C6C6F227D');
INSERT INTO "events" VALUES('run-30cf1b36c3',3,X'7B22736571223A332C226174223A313739343838313638392E3330343836312C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2231222C226E756D626572223A302C226F7574636F6D65223A2273636F726564222C22726577617264223A312E302C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A22227D7D');
INSERT INTO "events" VALUES('run-30cf1b36c3',4,X'7B22736571223A342C226174223A313739343838313638392E3330343836312C226B696E64223A22726F6C6C6F7574222C22726F6C6C6F7574223A7B227461736B223A2274776F222C226E756D626572223A302C226F7574636F6D65223A226D6F64656C5F6572726F72222C22726577617264223A6E756C6C2C227365636F6E6473223A302E302C22696E7075745F746F6B656E73223A302C226F75747075745F746F6B656E73223A302C226572726F72223A224D6F64656C4572726F723A20227D7D');
INSERT INTO "events" VALUES('run-30cf1b36c3',5,X'7B22736571223A352C226174223A313739343838313638392E3330343836312C226B696E64223A2270726F6772657373222C2270726F6772657373223A7B22706C616E6E6564223A322C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-30cf1b36c3',6,X'7B22736571223A362C226174223A313739343838313638392E333931303839372C226B696E64223A22737461747573222C22737461747573223A2266696E6973686564222C2270726F6772657373223A7B22706C616E6E6564223A6E756C6C2C22736574746C6564223A312C2273636F726564223A312C226661696C6564223A312C226D65616E5F726577617264223A312E307D7D');
INSERT INTO "events" VALUES('run-47acb4aa38',1,X'7B22736571223A312C226174223A313739343838313638392E353730373831322C226B696E64223A22737461747573222C22737461747573223A2270656E64696E67227D');
INSERT INTO "events" VALUES('run-47acb4aa38',2,X'7B22736571223A322C226174223A313739343838313638392E363133313233322C226B696E64223A226C6F67222C226C6576656C223A225741524E494E47222C2274657874223A224E6F20686F737420697320636F6E6E656374656420746F2074686973207365727665722C20736F207468652072756E2077616974732E20546865207365727665722773206F70657261746F722063616E207374617274206F6E652077697468206070726F63746F722072756E6E6572602C206F72207265737461727420746865207365727665722077697468202D2D72756E732D61742D6F6E63652061626F766520302E227D');
CREATE TABLE holds (
	run_id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_holds PRIMARY KEY (run_id), 
	CONSTRAINT fk_holds_owner FOREIGN KEY(owner) REFERENCES namespaces (name), 
	CONSTRAINT fk_holds_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "holds" VALUES('run-47acb4aa38','ada',1000000);
CREATE TABLE login_codes (
	code_hash BLOB NOT NULL, 
	token_id TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	used_at DOUBLE, 
	CONSTRAINT pk_login_codes PRIMARY KEY (code_hash), 
	CONSTRAINT fk_login_codes_token_id FOREIGN KEY(token_id) REFERENCES tokens (id) ON DELETE CASCADE
);
INSERT INTO "login_codes" VALUES(X'C9AC37EBF97521293B32F62602F1DC3F6C4F32F3935E8C6B98A4B48532343645','6f336b1723',1.79488168396196556093e+09,1.79488528396196556089e+09,NULL);
INSERT INTO "login_codes" VALUES(X'68617368','478bedf1e0',1.0,2.0,NULL);
CREATE TABLE members (
	team TEXT NOT NULL, 
	user TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_members PRIMARY KEY (team, user), 
	CONSTRAINT fk_members_team FOREIGN KEY(team) REFERENCES teams (name) ON DELETE CASCADE, 
	CONSTRAINT fk_members_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "members" VALUES('robots','ada','admin');
CREATE TABLE namespaces (
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	CONSTRAINT pk_namespaces PRIMARY KEY (name)
);
INSERT INTO "namespaces" VALUES('root','user');
INSERT INTO "namespaces" VALUES('ada','user');
INSERT INTO "namespaces" VALUES('robots','team');
CREATE TABLE places (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	server TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	status TEXT NOT NULL, 
	message TEXT NOT NULL, 
	spec JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	ended_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id), 
	CONSTRAINT fk_places_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "places" VALUES('box-1','sandbox','ada','run-47acb4aa38','server-1','bubblewrap','ended','It was deleted.','{}',1.0,2.0,1.5);
CREATE TABLE prices (
	model TEXT NOT NULL, 
	input DOUBLE NOT NULL, 
	output DOUBLE NOT NULL, 
	cached DOUBLE, 
	CONSTRAINT pk_prices PRIMARY KEY (model)
);
INSERT INTO "prices" VALUES('parrot',1.0,2.0,NULL);
CREATE TABLE reservations (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	run_id TEXT, 
	amount BIGINT NOT NULL, 
	holder TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	CONSTRAINT pk_reservations PRIMARY KEY (id), 
	CONSTRAINT fk_reservations_owner FOREIGN KEY(owner) REFERENCES namespaces (name)
);
INSERT INTO "reservations" VALUES('res-1','ada','run-47acb4aa38',7,'server-1',1.0);
CREATE TABLE roles (
	environment_id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	role TEXT NOT NULL, 
	CONSTRAINT pk_roles PRIMARY KEY (environment_id, holder), 
	CONSTRAINT fk_roles_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_roles_holder FOREIGN KEY(holder) REFERENCES namespaces (name) ON DELETE CASCADE
);
INSERT INTO "roles" VALUES('env-14c33470ce','robots','read');
CREATE TABLE rollout_entries (
	run_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	entry BLOB NOT NULL, 
	CONSTRAINT pk_rollout_entries PRIMARY KEY (run_id, place), 
	CONSTRAINT fk_rollout_entries_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollout_entries" VALUES('run-30cf1b36c3',1,X'92DC00140100A673636F726564CB3FF0000000000000CB0000000000000000CB000000000000000000000001C081A57269676874CB3FF0000000000000A0A0A0A0A0A0A0A0969400000000C0C0808080');
INSERT INTO "rollout_entries" VALUES('run-30cf1b36c3',2,X'92DC0014A374776F00AB6D6F64656C5F6572726F72C0CB0000000000000000CB000000000000000000000001C080AA4D6F64656C4572726F72A0A0A0A0A0A0A096940000000084A56572726F72AA4D6F64656C4572726F72A76D657373616765A0A57068617365A0A86C6F636174696F6EA0C0808080');
CREATE TABLE rollouts (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	settled BOOLEAN NOT NULL, 
	outcome TEXT NOT NULL, 
	reward DOUBLE, 
	seconds DOUBLE NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	"row" BLOB NOT NULL, 
	CONSTRAINT pk_rollouts PRIMARY KEY (run_id, task, number), 
	CONSTRAINT fk_rollouts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "rollouts" VALUES('run-30cf1b36c3','1',0,1,1,'scored',1.0,0.0,0,0,X'78011DCB410AC0200C44D1AB48D64574DBCB88686885484AB4B420DEBDB1BBF9F06600BEB15E84A164D88DDF0C0813F1DDB59C96AEC415B5A02516CCB0083E517E6F97A9D8A5A4A6668094E35C5F6FDD9C1F750F1CD7');
INSERT INTO "rollouts" VALUES('run-30cf1b36c3','"two"',0,2,0,'model_error',NULL,0.0,0,0,X'7801AB564AAD48CC2DC8498DCF4C51B252502A29CF57D251502ACACFC9C92F2D018A1800794056727E6E2A483E373F2535273EB5A828BF08A40EC2B052A886B3947C412A5CC10A6A6B01CE1A1F4F');
CREATE TABLE run_comments (
	id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	task_key TEXT, 
	number INTEGER, 
	step INTEGER, 
	author TEXT NOT NULL, 
	text TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	edited_at DOUBLE, 
	deleted_at DOUBLE, 
	deleted_by TEXT, 
	CONSTRAINT pk_run_comments PRIMARY KEY (id), 
	CONSTRAINT fk_run_comments_author FOREIGN KEY(author) REFERENCES users (name), 
	CONSTRAINT fk_run_comments_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_comments" VALUES('comment-1','run-47acb4aa38','0000000000000000',0,NULL,'ada','why?',1.0,NULL,NULL,NULL);
CREATE TABLE run_datasets (
	run_id TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	CONSTRAINT pk_run_datasets PRIMARY KEY (run_id, version_id), 
	CONSTRAINT fk_run_datasets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_run_datasets_version_id FOREIGN KEY(version_id) REFERENCES dataset_versions (id) ON DELETE CASCADE
);
INSERT INTO "run_datasets" VALUES('run-47acb4aa38','content-1');
CREATE TABLE run_labels (
	run_id TEXT NOT NULL, 
	task TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	person TEXT NOT NULL, 
	score DOUBLE, 
	note TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_labels PRIMARY KEY (run_id, task, number, person), 
	CONSTRAINT fk_run_labels_person FOREIGN KEY(person) REFERENCES users (name), 
	CONSTRAINT fk_run_labels_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_labels" VALUES('run-47acb4aa38','0',0,'ada',1.0,'right',1.0);
CREATE TABLE run_links (
	run_id TEXT NOT NULL, 
	link_hash BLOB NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_run_links PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_links_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_links" VALUES('run-47acb4aa38',X'68617368',X'7365616C6564',1.0);
CREATE TABLE run_origins (
	run_id TEXT NOT NULL, 
	source TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	entrypoint TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	dataset JSON NOT NULL, 
	config_hash TEXT NOT NULL, 
	recipe JSON NOT NULL, 
	CONSTRAINT pk_run_origins PRIMARY KEY (run_id), 
	CONSTRAINT fk_run_origins_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_origins" VALUES('run-47acb4aa38','ada/agents','/srv/agents','math','main.py','c0ffee','main','{"owner": "ada", "name": "sums", "format": "jsonl", "sha256": "0000000000000000000000000000000000000000000000000000000000000000", "selected_rows": 4}','abc','{}');
CREATE TABLE run_secrets (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	CONSTRAINT pk_run_secrets PRIMARY KEY (run_id, name), 
	CONSTRAINT fk_run_secrets_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
INSERT INTO "run_secrets" VALUES('run-47acb4aa38','OWN_KEY',X'01101E346B07BDDDCEE3F55F1F061AF532C164A2EBFB24255767A02EE4A4543E175284');
CREATE TABLE runs (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	team TEXT, 
	environment_id TEXT, 
	version_id TEXT, 
	environment TEXT NOT NULL, 
	version TEXT, 
	content_hash TEXT, 
	model TEXT NOT NULL, 
	client_run_id TEXT, 
	settings JSON NOT NULL, 
	permissions JSON NOT NULL, 
	timeout_minutes INTEGER, 
	max_cost BIGINT, 
	status TEXT NOT NULL, 
	cause JSON, 
	planned INTEGER, 
	attempt INTEGER NOT NULL, 
	crashes INTEGER NOT NULL, 
	rows_at_crash INTEGER NOT NULL, 
	host TEXT, 
	lease_until DOUBLE, 
	deadline_at DOUBLE, 
	last_batch INTEGER NOT NULL, 
	last_seq INTEGER NOT NULL, 
	settled INTEGER NOT NULL, 
	scored INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	reward_sum DOUBLE NOT NULL, 
	cost BIGINT, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	metadata JSON NOT NULL, 
	summary JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, row_bytes BIGINT DEFAULT '0' NOT NULL, log_bytes BIGINT DEFAULT '0' NOT NULL, visibility TEXT DEFAULT 'private' NOT NULL, score JSON, suite TEXT, tags JSON, note TEXT DEFAULT '' NOT NULL, revision INTEGER DEFAULT '0' NOT NULL, edited_at DOUBLE, editors JSON, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT fk_runs_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE SET NULL, 
	CONSTRAINT fk_runs_owner FOREIGN KEY(owner) REFERENCES users (name), 
	CONSTRAINT fk_runs_team FOREIGN KEY(team) REFERENCES teams (name), 
	CONSTRAINT fk_runs_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE SET NULL, 
	CONSTRAINT uq_runs_owner_client_run_id UNIQUE (owner, client_run_id)
);
INSERT INTO "runs" VALUES('run-30cf1b36c3','local','','ada',NULL,NULL,NULL,'sums',NULL,NULL,'m','local-1','{"seed": 7}','{}',NULL,NULL,'finished',NULL,NULL,0,0,0,NULL,NULL,NULL,1,6,1,1,1,1.0,NULL,0,0,'{"config": {"seed": 7}, "pass_threshold": 1.0}','{"tasks": 1, "rollouts_per_task": 1, "planned": null, "finished": 2, "scored": 1, "timed_out": 0, "coverage": null, "outcomes": {"scored": 1, "model_error": 1}, "reward": {"mean": 1.0, "se": null, "interval": null, "n": 1}, "bounds": {"low": 0.5, "high": 1.0}, "metrics": {"right": {"mean": 1.0, "se": null, "interval": null, "n": 1}}, "pass_threshold": 1.0, "scores": {"attempts": 2, "graded": 1, "passed": 1, "failed": 1, "skipped": 0, "pass_rate": 0.5, "reward_over_graded": 1.0, "reward_over_all": 0.5}, "pass_at_k": {}, "pass_hat_k": {}, "stop_conditions": {"none": 2}, "seconds": {"median": 0.0, "p90": 0.0, "longest": 0.0}, "usage": {}, "other_usage": {}, "cost_usd": null, "unpriced_models": ["m"], "errors": [{"outcome": "model_error", "kind": "ModelError", "count": 1, "sample": "", "task": "two", "rollout": 0, "phase": "", "location": ""}], "cleanup_errors": [], "retried": 0, "members": {}, "reused_replies": {}, "saved_usd": null, "rewards": null}',1794881689.1727,1794881689.1727,1.79488168939108967778e+09,1428,69,'private','{"mean": 1.0, "interval": null, "tasks": 1, "coverage": null}',NULL,NULL,'',0,NULL,NULL);
INSERT INTO "runs" VALUES('run-47acb4aa38','hosted','nightly','ada',NULL,'env-14c33470ce','ver-0b9d4708a8','ada/sums','0.1.0','4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','parrot',NULL,'{}','{"sandboxes": false, "instances": false, "network": false}',120,1000000,'pending',NULL,NULL,0,0,0,NULL,NULL,NULL,0,2,0,0,0,0.0,NULL,0,0,'{}',NULL,1.79488168957078123087e+09,NULL,NULL,0,0,'private',NULL,NULL,NULL,'',0,NULL,NULL);
CREATE TABLE seals (
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	at DOUBLE NOT NULL, 
	CONSTRAINT pk_seals PRIMARY KEY (name)
);
INSERT INTO "seals" VALUES('proof',X'0153A1DCF5E15D03288CF782C6B0E8512FD92B009071D4B3D89F310B99E4853EBB814262',1.79488168386907911305e+09);
CREATE TABLE secret_links (
	environment_id TEXT NOT NULL, 
	secret_id TEXT NOT NULL, 
	CONSTRAINT pk_secret_links PRIMARY KEY (environment_id, secret_id), 
	CONSTRAINT fk_secret_links_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secret_links_secret_id FOREIGN KEY(secret_id) REFERENCES secrets (id) ON DELETE CASCADE
);
INSERT INTO "secret_links" VALUES('env-14c33470ce','sec-53b534a974');
CREATE TABLE secrets (
	id TEXT NOT NULL, 
	owner TEXT, 
	environment_id TEXT, 
	name TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	description TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_secrets PRIMARY KEY (id), 
	CONSTRAINT fk_secrets_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT fk_secrets_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_secrets_environment_id_name UNIQUE (environment_id, name), 
	CONSTRAINT uq_secrets_owner_name UNIQUE (owner, name)
);
INSERT INTO "secrets" VALUES('sec-53b534a974','ada',NULL,'SHARED_KEY',X'016376227CDDB89DB5FE1A44A6B21861E8DEBFCC10C99E611265031CD25B66A7A8B0','',1.79488168885521411893e+09,1.79488168885521411893e+09);
INSERT INTO "secrets" VALUES('sec-84faf1edd3',NULL,'env-14c33470ce','SUMS_KEY',X'0147F8534B5872A79A6B6CE7B8032469D591AB2BF0848562278243CB8D67AE5EF71229772D','of the sums',1.79488168896231770508e+09,1.79488168896231770508e+09);
CREATE TABLE server_settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_server_settings PRIMARY KEY (name)
);
INSERT INTO "server_settings" VALUES('run_policy','readers');
CREATE TABLE source_builds (
	source_id TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	rollout TEXT NOT NULL, 
	version_id TEXT NOT NULL, 
	files JSON NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	CONSTRAINT pk_source_builds PRIMARY KEY (source_id, commit_sha, rollout), 
	CONSTRAINT fk_source_builds_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE, 
	CONSTRAINT fk_source_builds_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "source_builds" VALUES('src-1','c0ffee','math','ver-0b9d4708a8','["main.py"]','Ada','Begin');
CREATE TABLE sources (
	id TEXT NOT NULL, 
	owner TEXT NOT NULL, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	repository TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	has_credentials BOOLEAN NOT NULL, 
	known_hosts TEXT NOT NULL, 
	branch TEXT NOT NULL, 
	commit_sha TEXT NOT NULL, 
	author TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	committed_at DOUBLE, 
	rollouts JSON NOT NULL, 
	problem TEXT NOT NULL, 
	synced_at DOUBLE, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT fk_sources_owner FOREIGN KEY(owner) REFERENCES namespaces (name) ON DELETE CASCADE, 
	CONSTRAINT uq_sources_owner_name UNIQUE (owner, name)
);
INSERT INTO "sources" VALUES('src-1','ada','agents','file:///srv/agents','/srv/agents',X'7365616C6564',0,'','main','c0ffee','Ada','Begin',NULL,'["math"]','',NULL,1.0);
CREATE TABLE teams (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_teams PRIMARY KEY (id), 
	CONSTRAINT fk_teams_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_teams_name UNIQUE (name)
);
INSERT INTO "teams" VALUES('team-dc69acc637','robots',1.79488168842753982546e+09);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	secret_hash BLOB NOT NULL, 
	user TEXT, 
	run_id TEXT, 
	attempt INTEGER, 
	name TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	revoked_at DOUBLE, host_key_hash BLOB, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE, 
	CONSTRAINT fk_tokens_user FOREIGN KEY(user) REFERENCES users (name) ON DELETE CASCADE
);
INSERT INTO "tokens" VALUES('d59dc29457','first',X'5DEE1B5E9EE8C3DC2B32FCD225CBDC87DBA2D53167377ADD9BEA1D6109EAFE08','root',NULL,NULL,'first login','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79488168393797969816e+09,NULL,1.79488168831327748291e+09,1.79488168833384037015e+09,NULL);
INSERT INTO "tokens" VALUES('6f336b1723','user',X'3F32C22E275C9FB0FB5CB3DFF8BE111BD7B50576EC9DC8B35F979D4B8B25BA5D','root',NULL,NULL,'dashboard','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79488168396219754212e+09,1.80265768396196556086e+09,NULL,NULL,NULL);
INSERT INTO "tokens" VALUES('478bedf1e0','user',X'60B9F57BE075E9AF87C229DDD45008940B3BDE599972FED4341B2FA2655F26B9','root',NULL,NULL,'','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write", "admin"]',1.79488168833590555194e+09,1.80265768833586192132e+09,1.79488168836441230771e+09,NULL,NULL);
INSERT INTO "tokens" VALUES('f161ad414c','user',X'512EC503D0ED335A55553869F5E6EFC17AE585C74D71C93365986C5B8E304275','ada',NULL,NULL,'first','["environments:read", "environments:write", "runs:read", "runs:write", "secrets:write", "inference", "tokens:write"]',1.79488168837647485732e+09,1.80265768837619876864e+09,1.79488168839489173889e+09,NULL,NULL);
CREATE TABLE users (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_admin BOOLEAN NOT NULL, 
	created_at DOUBLE NOT NULL, 
	disabled_at DOUBLE, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT fk_users_name FOREIGN KEY(name) REFERENCES namespaces (name), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
INSERT INTO "users" VALUES('usr-36534cf742','root',1,1.79488168393585515022e+09,NULL);
INSERT INTO "users" VALUES('usr-9dbe4996d0','ada',0,1.79488168837619876862e+09,NULL);
CREATE TABLE variables (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	CONSTRAINT pk_variables PRIMARY KEY (id), 
	CONSTRAINT fk_variables_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_variables_environment_id_name UNIQUE (environment_id, name)
);
INSERT INTO "variables" VALUES('var-9e10760746','env-14c33470ce','REGION','north',1.79488168897256207467e+09,1.79488168897256207467e+09);
CREATE TABLE version_tasks (
	version_id TEXT NOT NULL, 
	place INTEGER NOT NULL, 
	slug TEXT NOT NULL, 
	task BLOB NOT NULL, 
	CONSTRAINT pk_version_tasks PRIMARY KEY (version_id, place), 
	CONSTRAINT fk_version_tasks_version_id FOREIGN KEY(version_id) REFERENCES versions (id) ON DELETE CASCADE
);
INSERT INTO "version_tasks" VALUES('ver-0b9d4708a8',0,'sum',X'7B7D');
CREATE TABLE versions (
	id TEXT NOT NULL, 
	environment_id TEXT NOT NULL, 
	version TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	content_hash TEXT NOT NULL, 
	wheel_name TEXT NOT NULL, 
	wheel_sha256 TEXT NOT NULL, 
	wheel_size BIGINT NOT NULL, 
	source_sha256 TEXT NOT NULL, 
	source_size BIGINT NOT NULL, 
	requires_python TEXT NOT NULL, 
	dependencies JSON NOT NULL, 
	secrets JSON NOT NULL, 
	files JSON NOT NULL, 
	metadata_text TEXT NOT NULL, 
	pushed_by TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	check_status TEXT NOT NULL, 
	check_message TEXT NOT NULL, 
	check_log TEXT NOT NULL, 
	check_tasks INTEGER, 
	check_seconds DOUBLE, 
	check_facts JSON NOT NULL, 
	check_lease_until DOUBLE, 
	check_host TEXT, 
	check_leases INTEGER NOT NULL, 
	lock TEXT, check_details BLOB, 
	CONSTRAINT pk_versions PRIMARY KEY (id), 
	CONSTRAINT fk_versions_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id) ON DELETE CASCADE, 
	CONSTRAINT uq_versions_environment_id_version UNIQUE (environment_id, version)
);
INSERT INTO "versions" VALUES('ver-0b9d4708a8','env-14c33470ce','0.1.0',1,'4639ddff9dd898a47b046be0dad1201993306f6c78ea5f15bc9560f46e064f41','sums-0.1.0-py3-none-any.whl','e3a50bb090690ce7e8989323305f8f7c0c10370d9dff0935e7f374ed30b81920',918,'eaf5d961b05865da55e0f7e1d143e9a61d82cf9eb35778e1d22c45df77ee5d40',217,'>=3.10','[]','[]','[["pyproject.toml", 42], ["sums.py", 60]]','Metadata-Version: 2.1
Name: sums
Version: 0.1.0
Summary: Says hello.
Requires-Python: >=3.10
Keywords: hello,small
','ada',1.79488168858152389523e+09,'pending','','',NULL,NULL,'{}',NULL,NULL,0,NULL,NULL);
CREATE INDEX ix_calls_owner ON calls (owner, at);
CREATE INDEX ix_calls_run_id ON calls (run_id);
CREATE INDEX ix_entries_owner ON entries (owner, at);
CREATE INDEX ix_runs_created_at ON runs (created_at, id);
CREATE INDEX ix_runs_environment_id ON runs (environment_id);
CREATE INDEX ix_runs_owner ON runs (owner, started_at);
CREATE INDEX ix_runs_status ON runs (status);
CREATE INDEX ix_holds_owner ON holds (owner);
CREATE INDEX ix_places_run_id ON places (run_id);
CREATE INDEX ix_rollouts_place ON rollouts (run_id, place);
CREATE INDEX ix_tokens_run_id ON tokens (run_id);
CREATE INDEX ix_tokens_user ON tokens (user);
CREATE INDEX ix_reservations_owner ON reservations (owner);
CREATE INDEX ix_reservations_holder ON reservations (holder);
CREATE INDEX ix_dataset_versions_pushed_by ON dataset_versions (pushed_by);
CREATE INDEX ix_dataset_versions_sha256 ON dataset_versions (sha256);
CREATE INDEX ix_run_datasets_version_id ON run_datasets (version_id);
CREATE INDEX ix_run_origins_repository ON run_origins (repository);
CREATE INDEX ix_run_origins_config_hash ON run_origins (config_hash);
CREATE INDEX ix_browser_sessions_token_id ON browser_sessions (token_id);
CREATE INDEX ix_login_codes_token_id ON login_codes (token_id);
CREATE INDEX ix_runs_suite ON runs (suite);
CREATE INDEX ix_run_labels_person ON run_labels (person);
CREATE INDEX ix_runs_edited_at ON runs (edited_at);
CREATE INDEX ix_run_comments_run_id ON run_comments (run_id, created_at, id);
CREATE INDEX ix_run_comments_author ON run_comments (author);
COMMIT;
